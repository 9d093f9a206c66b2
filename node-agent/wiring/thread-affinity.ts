import { statSync } from 'node:fs';
import { join } from 'node:path';
import { cacheProblem } from '../../kube/reflector.ts';
import type { InterferenceStatus } from '../../model/agent-status.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { resultOrNone } from '../../model/json.ts';
import { createAffinity } from '../../native/affinity.ts';
import { monotonicSeconds } from '../../runtime/time.ts';
import { CHECKPOINT_FILE } from '../assignments/checkpoint.ts';
import { Interference } from '../interrupts/interference.ts';
import { KernelFiles } from '../interrupts/kernel-files.ts';
import { InterruptMoves } from '../interrupts/moves.ts';
import { Originals } from '../interrupts/originals.ts';
import { type Duty, Listeners } from '../lifecycle/duty.ts';
import { OvsAffinity } from '../ovs-affinity/ovs-affinity.ts';
import { AffinityEvents } from '../ovs-affinity/reporting.ts';
import { CgroupTree } from '../processes/cgroup-tree.ts';
import { bootId, OnlineCpus, procThreads, startOf } from '../processes/proc.ts';
import { procProcesses } from '../vm-pinning/guest.ts';
import { watchLaunchers } from '../vm-pinning/launchers.ts';
import { PinRecord } from '../vm-pinning/pins-file.ts';
import { VmPinning } from '../vm-pinning/vm-pinning.ts';
import type { AgentParts, HostParts, HostSources } from './parts.ts';

/** Time before OVS takes CPUs that became free; it leaves CPUs with a new owner at once. */
const GROWTH_DELAY_SECONDS = 5;
/** Interval of checks of OVS's threads without an event; each checks an eighth of them. */
const OVS_CHECK_INTERVAL_SECONDS = 15;

export function createOvsDuty(
  { config, nodeName, events, metrics, log }: AgentParts,
  { runs, assignments, networks, kubeletConfig }: HostSources,
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
    const message = 'Failed to get reservedSystemCPUs from kubelet config file';
    if (kubelet === undefined) log.info({ reasons: problems }, message);
  };
  return { ovs, run: async (signal: AbortSignal) => void (await Promise.all([ovs.run(signal), checkReserved()])) };
}

/** Interval of checks of the VMs' threads; each check corrects changes by other processes. */
const VM_CHECK_INTERVAL_SECONDS = 1;

export function createVmPinningDuty(
  parts: AgentParts,
  { runs, assignments }: Pick<HostSources, 'runs' | 'assignments'>,
) {
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
    vms,
    /** Why launchers are not known any more: new VMs with masks stay paused. All else is read on the node, not watched. */
    launcherProblem: () => (launchers.synced ? cacheProblem({ launchers }, monotonicSeconds()) : undefined),
    async run(signal: AbortSignal) {
      // The agent checks a mask against the CPUs of the host, which must be known first.
      await runs.read();
      await vms.run(signal);
    },
  };
}

/** The duty that moves also runs in the other modes, since an earlier agent may have moved something. */
export function createInterruptDuties(
  parts: AgentParts,
  { runs, assignments, networks, ovs }: Pick<HostParts, 'runs' | 'assignments' | 'networks' | 'ovs'>,
  vms: Pick<VmPinning, 'guests'> | undefined,
) {
  const { config, nodeName, log } = parts;
  const { interrupts: mode, procRoot, sysfsRoot, etcRoot, irqbalanceRundir } = config;
  const common = { procRoot, sysfsRoot, nowSeconds: monotonicSeconds, assignments };
  // The name contains the node, since one machine may run an agent for each of several.
  const path = join(config.stateDir, `interrupts-${nodeName}.json`);
  const originals = new Originals({ path, bootId: bootId(), log });
  const online = new OnlineCpus();
  const pmdCpus = () => networks.view().pmdCpus.union(ovs?.pmdCpus() ?? CpuSet.EMPTY);
  const moves = new InterruptMoves({
    ...parts,
    ...common,
    etcRoot,
    irqbalanceRundir,
    originals,
    files: new KernelFiles(),
    affinity: createAffinity(),
    isMoving: mode === 'move',
    cpus: () => ({
      online: online.read(),
      quiet: pmdCpus().union(runs.run?.facts.isolated ?? CpuSet.EMPTY),
      cells: runs.run?.facts.host.cells ?? [],
    }),
  });
  const duties: Duty[] = [{ name: 'interrupt-moves', run: (signal) => moves.run(signal) }];
  if (mode === 'off') return { duties, moves, interference: undefined, status: undefined };
  const tree = new CgroupTree(config.cgroupRoot);
  const interference = new Interference({ ...parts, ...common, tree, guests: () => vms?.guests() ?? [] });
  duties.push({ name: 'interference', run: (signal) => interference.run(signal) });
  const status = (): InterferenceStatus => {
    const { problems, ...moved } = moves.status();
    return { ...moved, vms: interference.vms(), problems: [...interference.problems, ...problems] };
  };
  return { duties, moves, interference, status };
}
