import { join } from 'node:path';
import { createPodResourcesClient, POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import type { DpuWord, GateScope, GateState } from '../../model/cni/decide.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { renewalsBeyondRestarts } from '../../model/lease/observer.ts';
import { DPU_LEASE_PREFIX } from '../../model/names.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { cpusOfPod } from '../assignments/view.ts';
import { DpuLease, ovsProbe, readDpuRun } from '../dpu-lease/dpu.ts';
import { maintainDpuLease, releaseDpuLease } from '../dpu-lease/dpu-host.ts';
import { announceHealth, announceWriters, HostDpuHealth } from '../dpu-lease/health.ts';
import { TokenRenewal } from '../dpu-lease/token-renewal.ts';
import type { StateFile } from '../files/state-file.ts';
import { DeviceQuestions, GateAnswers } from '../gate/answers.ts';
import { GateInstaller, removeGate } from '../gate/installer.ts';
import { GateServer } from '../gate/server.ts';
import { gateFilesIn } from '../gate/settings.ts';
import { gateStateFile, observedLease, readObservedLease } from '../gate/state-file.ts';
import { type Duty, Guard, untilAborted } from '../lifecycle/duty.ts';
import { bootId, machineSeconds } from '../processes/proc.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import type { NodeAgentConfig } from './config.ts';
import type { AgentParts, Vacate } from './parts.ts';

/** Of the API server's clock, as its responses show it. */
const CLOCK_RESOLUTION_MILLISECONDS = 1000;

/**
 * `full` ignores the DPU's Lease, `dpu-host` creates and watches it, `dpu` renews it; with interval 0 the host releases
 * it. OVN-Kubernetes' host side (`--dpu-lease observe`) renews it at each start, so a few renewals prove nothing.
 */
export function createDpuLeaseDuties(parts: AgentParts): { readonly duties: Duty[]; readonly health?: HostDpuHealth } {
  const { config, nodeName, client } = parts;
  const { mode, dpuLeaseInterval: renewInterval, dpuLeaseDuration: duration } = config;
  const timing = { renewInterval, duration };
  if (mode === 'full') return { duties: [] };
  const lease = { namespace: config.dpuLeaseNamespace, name: DPU_LEASE_PREFIX + nodeName };
  const owns = config.dpuLease === 'own';
  if (timing.renewInterval === 0) {
    const run = (signal: AbortSignal) => releaseDpuLease({ ...parts, lease }, signal);
    const duty = { name: 'dpu-lease-release', run };
    return { duties: mode === 'dpu-host' && owns ? [duty] : [] };
  }
  if (mode === 'dpu') {
    const probe = ovsProbe(config.ovsRundir);
    const wallClock = () => {
      const offset = client.clockOffset?.() ?? 0;
      return Math.abs(offset) <= CLOCK_RESOLUTION_MILLISECONDS ? Date.now() : Date.now() + offset;
    };
    const readRun = () => readDpuRun(config.ovsRundir);
    const dpuLease = new DpuLease({ ...parts, lease, timing, probe, readRun, wallClock });
    const duty = { name: 'dpu-lease', run: (signal: AbortSignal) => dpuLease.run(signal) };
    return { duties: owns ? [duty, ...tokenDuties(parts)] : [] };
  }
  const health = new HostDpuHealth({
    client,
    lease,
    timing,
    proof: owns ? 1 : renewalsBeyondRestarts(duration),
    whenUnknown: config.dpuUnknown,
    ...(owns && { onWriter: announceWriters(parts) }),
    before: () => readObservedLease(gateFilesIn(config.runDir).state, bootId() || undefined),
    nowSeconds: machineSeconds,
  });
  health.subscribe(announceHealth(parts));
  const maintain = (signal: AbortSignal) => maintainDpuLease({ ...parts, lease, timing }, signal);
  const observing = { name: 'dpu-health', run: (signal: AbortSignal) => health.run(signal) };
  return { duties: [observing, ...(owns ? [{ name: 'dpu-lease', run: maintain }] : [])], health };
}

/** Renews the DPU's token, since a DPU has no kubelet that would do so. */
function tokenDuties(parts: AgentParts): readonly Duty[] {
  const { log, token, tokenFile } = parts;
  if (tokenFile === undefined) {
    const reason = 'the kubeconfig contains the token itself; name a file in tokenFile';
    if (token() !== undefined) log.warn({ reason }, 'the DPU token cannot be renewed');
    return [];
  }
  const renewal = new TokenRenewal({ ...parts, tokenFile, wallClock: Date.now, nowSeconds: monotonicSeconds });
  return [{ name: 'dpu-token', run: (signal) => renewal.run(signal) }];
}

export interface GateParts {
  readonly assignments: Assignments | undefined;
  readonly vacate: Vacate;
  /** Undefined if the node has no DPU, or its health is not checked. */
  readonly health?: HostDpuHealth | undefined;
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
  const answer: GateAnswers['answer'] = (question, caller) => answers.answer(question, caller);
  const server = new GateServer({ socketPath: files.socket, answer, log });
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
