import { join } from 'node:path';
import { cacheProblem } from '../../kube/reflector.ts';
import { createAffinity } from '../../native/affinity.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { createCgroupTree } from '../processes/cgroup-tree.ts';
import { bootId } from '../processes/machine.ts';
import { startOf } from '../processes/proc.ts';
import { procThreads } from '../processes/threads.ts';
import { procProcesses } from '../vm-pinning/guest.ts';
import { watchLaunchers } from '../vm-pinning/launchers.ts';
import { createPinsFile } from '../vm-pinning/pins-file.ts';
import { createVmPinning, type VmPinning } from '../vm-pinning/vm-pinning.ts';
import type { AgentParts, HostParts } from './parts.ts';

/** Interval of checks of the VMs' threads; each check corrects changes by other processes. */
const CHECK_INTERVAL_SECONDS = 1;

export interface VmPinningDuty extends VmPinning {
  /** Why launchers are not known any more: new VMs with masks stay paused. All else is read on the node, not watched. */
  problem(): string | undefined;
}

/** Creates the duty for a host with a kubelet. */
export function createVmPinningDuty(
  { client, config, events, metrics, log }: AgentParts,
  { facts, assignments }: Pick<HostParts, 'facts' | 'assignments'>,
): VmPinningDuty {
  let launchers: ReturnType<typeof watchLaunchers> | undefined;
  const { nodeName } = config;
  // The name contains the node, since one machine may run an agent for each of several.
  const file = join(config.stateDir, `vm-pins-${nodeName}.json`);
  const vms = createVmPinning({
    affinity: createAffinity(),
    threads: procThreads,
    processes: procProcesses,
    tree: createCgroupTree(config.cgroupRoot),
    record: createPinsFile(file, { bootId: bootId(), startOf, log }),
    now: () => performance.now(),
    watch(onChange) {
      launchers = watchLaunchers({ client, nodeName, onChange, log });
      return launchers;
    },
    assignments,
    host: () => facts.known()?.host,
    checkInterval: CHECK_INTERVAL_SECONDS,
    events,
    nodeName,
    log,
    metrics,
  });
  return {
    ...vms,
    problem: () => (launchers?.synced ? cacheProblem({ launchers }, monotonicSeconds()) : undefined),
    async run(signal) {
      // The agent checks a mask against the CPUs of the host, which must be known first.
      await facts.read();
      await vms.run(signal);
    },
  };
}
