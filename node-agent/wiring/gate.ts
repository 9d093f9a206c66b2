import { join } from 'node:path';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import type { DpuWord, GateScope, GateState } from '../../model/cni/decide.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { cpusOfPod } from '../assignments/view.ts';
import type { HostDpuHealth } from '../dpu-lease/health.ts';
import type { StateFile } from '../files/state-file.ts';
import { DeviceQuestions, GateAnswers } from '../gate/answers.ts';
import { GateInstaller, removeGate } from '../gate/installer.ts';
import { GateServer } from '../gate/server.ts';
import { gateFilesIn } from '../gate/settings.ts';
import { gateStateFile, observedLease } from '../gate/state-file.ts';
import { type Duty, Guard, untilAborted } from '../lifecycle/duty.ts';
import { bootId, machineSeconds } from '../processes/proc.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import type { NodeAgentConfig } from './config.ts';
import type { AgentParts, Vacate } from './parts.ts';

export interface GateParts {
  readonly assignments: Assignments | undefined;
  readonly vacate: Vacate;
  /** Undefined if the node has no DPU, or its health is not checked. */
  readonly health: HostDpuHealth | undefined;
}

/** As the CNI plugin reads it. */
const scopeOf = ({ dpuScope }: NodeAgentConfig): GateScope => (dpuScope === 'attached' ? 'device' : 'all');

export function createGateDuties(parts: AgentParts, { assignments, vacate, health }: GateParts): Duty[] {
  const { config, log, metrics } = parts;
  if (config.gate !== 'on') return [createRemoval(config, log)];
  const directories = { binDir: config.cniBinDir, confDir: config.cniConfDir };
  const files = gateFilesIn(config.runDir);
  const podResources = createPodResourcesClient(join(config.kubeletDir, POD_RESOURCES_SOCKET));
  const devices = new DeviceQuestions(podResources);
  const answers = new GateAnswers({
    policy: { status: config.gateStatus === 'on', scope: scopeOf(config), exempt: config.dpuExempt },
    dpu: () => health?.current(),
    cpusOf: (podUid) => (assignments === undefined ? CpuSet.EMPTY : cpusOfPod(assignments.readNow(), podUid)),
    vacate,
    hasDevice: (pod) => devices.hasDevice(pod),
    metrics,
  });
  const server = new GateServer({
    socketPath: files.socket,
    answer: (question, caller) => answers.answer(question, caller),
    log,
  });
  const installer = new GateInstaller({ ...parts, ...directories, shim: parts.gateProgram });

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
    { name: 'gate-state', run: keepState(parts, gateStateFile(files.state, log, parts.unsaved.set), health) },
    { name: 'gate-installer', run: (signal) => installer.run(signal) },
  ];
}

/** Writes the state file at the start and at each read of the Lease. */
function keepState({ config }: AgentParts, file: StateFile<GateState>, health: HostDpuHealth | undefined) {
  const boot = bootId() || undefined;
  const write = () => {
    const observation = health?.observation();
    const lease = observation && observedLease(observation, boot);
    file.set({ ...stateOf(config, health?.current()), ...(lease && { lease }) });
  };
  return async (signal: AbortSignal): Promise<void> => {
    file.load(signal);
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
    scope: scopeOf(config),
    exempt: config.dpuExempt,
    at: Math.floor(machineSeconds() * 1000),
  };
}

/** Disables the gate once, then has nothing to do. With `remove`, nothing of it stays on the node. */
function createRemoval(
  { gate, cniConfDir: confDir, cniBinDir: binDir, runDir }: NodeAgentConfig,
  log: AgentLogger,
): Duty {
  return {
    name: 'gate-removal',
    async run(signal) {
      const removed = removeGate({ confDir, state: gateFilesIn(runDir).state, ...(gate === 'remove' && { binDir }) });
      if (gate === 'remove') log.info({ removed }, 'gate and its plugin removed');
      else if (removed.length > 0) log.info({ removed }, 'gate removed from the primary network');
      await untilAborted(signal);
    },
  };
}
