import { renewalsBeyondRestarts } from '../../model/lease/observer.ts';
import { DPU_LEASE_PREFIX } from '../../model/names.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { DpuLease, ovsProbe } from '../dpu-lease/dpu.ts';
import { maintainDpuLease, releaseDpuLease } from '../dpu-lease/dpu-host.ts';
import { announceHealth, announceWriters, HostDpuHealth } from '../dpu-lease/health.ts';
import { readDpuRun } from '../dpu-lease/run.ts';
import { TokenRenewal } from '../dpu-lease/token-renewal.ts';
import { gateFilesIn } from '../gate/settings.ts';
import { readObservedLease } from '../gate/state-file.ts';
import type { Duty } from '../lifecycle/duty.ts';
import { bootId, machineSeconds } from '../processes/proc.ts';
import type { AgentParts } from './parts.ts';

/** Of the API server's clock, as its responses show it. */
const CLOCK_RESOLUTION_MILLISECONDS = 1000;

export interface DpuLeaseDuties {
  readonly duties: readonly Duty[];
  /** The health of this host's DPU; undefined without a DPU or without the check. */
  readonly health: HostDpuHealth | undefined;
}

/**
 * `full` ignores the DPU's Lease, `dpu-host` creates and watches it, `dpu` renews it; with interval 0 the host releases
 * it. OVN-Kubernetes' host side (`--dpu-lease observe`) renews it at each start, so a few renewals prove nothing.
 */
export function createDpuLeaseDuties(parts: AgentParts): DpuLeaseDuties {
  const { config, nodeName, client } = parts;
  const { mode, dpuLeaseInterval: renewInterval, dpuLeaseDuration: duration } = config;
  const timing = { renewInterval, duration };
  if (mode === 'full') return { duties: [], health: undefined };
  const lease = { namespace: config.dpuLeaseNamespace, name: DPU_LEASE_PREFIX + nodeName };
  const owns = config.dpuLease === 'own';
  if (timing.renewInterval === 0) {
    const run = (signal: AbortSignal) => releaseDpuLease({ ...parts, lease }, signal);
    const duty = { name: 'dpu-lease-release', run };
    return { duties: mode === 'dpu-host' && owns ? [duty] : [], health: undefined };
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
    return { duties: owns ? [duty, ...tokenDuties(parts)] : [], health: undefined };
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
  const upkeep = { name: 'dpu-lease', run: maintain };
  const observing = { name: 'dpu-health', run: (signal: AbortSignal) => health.run(signal) };
  return { duties: [observing, ...(owns ? [upkeep] : [])], health };
}

/** Renews the DPU's token, since a DPU has no kubelet that would do so. */
function tokenDuties(parts: AgentParts): readonly Duty[] {
  const { log, token, tokenFile } = parts;
  if (tokenFile === undefined) {
    if (token() !== undefined)
      log.warn(
        { reason: 'the kubeconfig contains the token itself; name a file in tokenFile' },
        'the DPU token cannot be renewed',
      );
    return [];
  }
  const renewal = new TokenRenewal({ ...parts, tokenFile, wallClock: Date.now, nowSeconds: monotonicSeconds });
  return [{ name: 'dpu-token', run: (signal) => renewal.run(signal) }];
}
