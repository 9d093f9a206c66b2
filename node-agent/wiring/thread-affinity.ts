import { statSync } from 'node:fs';
import { join } from 'node:path';
import { cacheProblem } from '../../kube/reflector.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { resultOrNone } from '../../model/json.ts';
import { createAffinity } from '../../native/affinity.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { CHECKPOINT_FILE } from '../assignments/checkpoint.ts';
import { Listeners } from '../lifecycle/duty.ts';
import { OvsAffinity } from '../ovs-affinity/ovs-affinity.ts';
import { AffinityEvents } from '../ovs-affinity/reporting.ts';
import { CgroupTree } from '../processes/cgroup-tree.ts';
import { bootId, OnlineCpus, procThreads, startOf } from '../processes/proc.ts';
import { procProcesses } from '../vm-pinning/guest.ts';
import { watchLaunchers } from '../vm-pinning/launchers.ts';
import { PinRecord } from '../vm-pinning/pins-file.ts';
import { VmPinning } from '../vm-pinning/vm-pinning.ts';
import type { AgentParts, HostParts } from './parts.ts';

/** Time before OVS takes CPUs that became free; it leaves CPUs with a new owner at once. */
const GROWTH_DELAY_SECONDS = 5;
/** Interval of checks of OVS's threads without an event; each checks a sixth of them. */
const OVS_CHECK_INTERVAL_SECONDS = 15;

export function createOvsDuty(
  { config, nodeName, events, metrics, log }: AgentParts,
  {
    runs,
    assignments,
    networks,
    kubeletConfig,
  }: Omit<HostParts, 'ovs' | 'ovsSilence' | 'vms' | 'vacate' | 'interference'>,
) {
  const { ovsRundir: rundir, kubeletDir } = config;
  const checkpoint = join(kubeletDir, CHECKPOINT_FILE);
  const cgroups = new CgroupTree(config.cgroupRoot);
  const ovs = new OvsAffinity({
    affinity: createAffinity(),
    threads: procThreads,
    machine: new OnlineCpus().read,
    nowSeconds: monotonicSeconds,
    rundir,
    masksFile: join(config.stateDir, 'ovs-masks.json'),
    bootId: bootId(),
    enablerFile: config.ovsEnabler,
    growthDelay: GROWTH_DELAY_SECONDS,
    checkInterval: OVS_CHECK_INTERVAL_SECONDS,
    containers: cgroups.containers,
    isolated: () => (config.ovsIsolated === 'leave' ? runs.run?.facts.isolated : undefined) ?? CpuSet.EMPTY,
    pmdMask: () => networks.view().pmdCpus.union(cgroups.dedicatedToDpdk()),
    onPmdMask: networks.subscribe,
    assignments,
    assignedAt: () => resultOrNone(() => statSync(checkpoint).mtimeMs),
    events: new AffinityEvents({ recorder: events, nodeName, nowSeconds: monotonicSeconds }),
    log,
    metrics,
  });
  /** For the log only: the reserved CPUs are those that the kubelet does not report as allocatable. */
  const checkReserved = async () => {
    const { config: kubelet, problems } = await kubeletConfig();
    if (kubelet === undefined)
      log.info({ reasons: problems }, 'Failed to get reservedSystemCPUs from kubelet config file');
  };
  return {
    ovs,
    async run(signal: AbortSignal): Promise<void> {
      await Promise.all([ovs.run(signal), checkReserved()]);
    },
  };
}

/** Interval of checks of the VMs' threads; each check corrects changes by other processes. */
const VM_CHECK_INTERVAL_SECONDS = 1;

export interface VmPinningDuty extends Pick<VmPinning, 'pinning' | 'guests' | 'subscribe' | 'status' | 'run'> {
  /** Why launchers are not known any more: new VMs with masks stay paused. All else is read on the node, not watched. */
  problem(): string | undefined;
}

export function createVmPinningDuty(
  parts: AgentParts,
  { runs, assignments }: Pick<HostParts, 'runs' | 'assignments'>,
): VmPinningDuty {
  const { nodeName, config, log } = parts;
  const changes = new Listeners();
  const launchers = watchLaunchers({ ...parts, onChange: () => changes.notify() });
  // The name contains the node, since one machine may run an agent for each of several.
  const path = join(config.stateDir, `vm-pins-${nodeName}.json`);
  const vms = new VmPinning({
    ...parts,
    affinity: createAffinity(),
    threads: procThreads,
    processes: procProcesses,
    tree: new CgroupTree(config.cgroupRoot),
    record: new PinRecord({ path, bootId: bootId(), startOf, log, onProblem: parts.unsaved.set }),
    nowSeconds: monotonicSeconds,
    launchers,
    onLaunchers: changes.subscribe,
    assignments,
    host: () => runs.run?.facts.host,
    checkInterval: VM_CHECK_INTERVAL_SECONDS,
  });
  return {
    pinning: () => vms.pinning(),
    guests: () => vms.guests(),
    subscribe: vms.subscribe,
    status: vms.status,
    problem: () => (launchers.synced ? cacheProblem({ launchers }, monotonicSeconds()) : undefined),
    async run(signal) {
      // The agent checks a mask against the CPUs of the host, which must be known first.
      await runs.read();
      await vms.run(signal);
    },
  };
}
