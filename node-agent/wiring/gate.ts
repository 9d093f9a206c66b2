import { join } from 'node:path';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import type { DpuWord, GateState } from '../../model/cni/decide.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Assignments } from '../assignments/assignments.ts';
import type { HostDpuHealth } from '../dpu-lease/health.ts';
import { createAnswers, createDeviceQuestion, createPodCpus } from '../gate/answers.ts';
import { createInstaller, type GatePlaces, uninstall } from '../gate/installer.ts';
import { createGateServer } from '../gate/server.ts';
import { gateFilesIn } from '../gate/settings.ts';
import { observedLease, writeGateState } from '../gate/state-file.ts';
import { type Duty, Guard, untilAborted } from '../lifecycle/duty.ts';
import type { OvsAffinity } from '../ovs-affinity/ovs-affinity.ts';
import { bootId, machineSeconds } from '../processes/proc.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import type { NodeAgentConfig } from './config.ts';
import type { AgentParts } from './parts.ts';

export interface GateParts {
  readonly assignments: Assignments | undefined;
  readonly ovs: OvsAffinity | undefined;
  /** Undefined if the node has no DPU, or its health is not checked. */
  readonly health: HostDpuHealth | undefined;
}

export function createGateDuties(parts: AgentParts, { assignments, ovs, health }: GateParts): Duty[] {
  const { config, log, metrics } = parts;
  if (config.gate === 'off') return [];
  const places = { binDir: config.cniBinDir, confDir: config.cniConfDir };
  if (config.gate === 'remove') return [removal(places, log)];
  const files = gateFilesIn(config.runDir);
  const podResources = createPodResourcesClient(join(config.kubeletDir, POD_RESOURCES_SOCKET));
  const answers = createAnswers({
    policy: { status: config.gateStatus === 'on', scope: config.gateScope, exempt: config.gateExempt },
    dpu: () => health?.current(),
    // If this host runs no Open vSwitch, there is nothing to move.
    cpusOf:
      ovs === undefined
        ? () => CpuSet.EMPTY
        : createPodCpus(config.kubeletDir, () => assignments?.view().assignments ?? []),
    vacate: async (cpus, signal) => ovs?.vacate(cpus, signal),
    hasDevice: createDeviceQuestion(podResources),
    metrics,
  });
  const server = createGateServer({ socketPath: files.socket, answer: answers.answer, log });

  const run = async (signal: AbortSignal): Promise<void> => {
    const unsubscribe = health?.subscribe((_report, flipped) => {
      const aborted = flipped ? answers.recheck() : 0;
      if (aborted > 0) log.warn({ pods: aborted }, 'pod network setup aborted: the DPU died');
    });
    try {
      await server.run(signal);
    } finally {
      unsubscribe?.();
    }
  };
  return [
    { name: 'gate', run },
    { name: 'gate-state', run: keepState(parts, files.state, health) },
    { name: 'gate-installer', run: createInstaller({ ...parts, ...places, shim: parts.gateProgram }).run },
  ];
}

/** Writes the state file at the start and at each read of the Lease. */
function keepState({ config }: AgentParts, path: string, health: HostDpuHealth | undefined) {
  const boot = bootId() || undefined;
  const write = () => {
    const observation = health?.observation();
    const lease = observation && observedLease(observation, boot);
    writeGateState(path, { ...stateOf(config, health?.current()), ...(lease && { lease }) });
  };
  return async (signal: AbortSignal): Promise<void> => {
    write();
    const guard = new Guard();
    const unsubscribe = health?.subscribe(guard.wrap(write));
    try {
      await guard.until(signal);
    } finally {
      unsubscribe?.();
    }
  };
}

export function stateOf(config: NodeAgentConfig, dpu: DpuWord | undefined): GateState {
  const readiness = dpu?.ready ? 'ready' : 'not-ready';
  return {
    dpu: dpu === undefined ? 'none' : readiness,
    reason: dpu?.reason ?? '',
    status: config.gateStatus === 'on',
    scope: config.gateScope,
    exempt: config.gateExempt,
    at: Math.floor(machineSeconds() * 1000),
  };
}

/** Removes the gate once, then has nothing to do. */
function removal(places: GatePlaces, log: AgentLogger): Duty {
  return {
    name: 'gate-removal',
    async run(signal) {
      const removed = uninstall(places);
      log.info({ removed }, 'gate and its plugin removed');
      await untilAborted(signal);
    },
  };
}
