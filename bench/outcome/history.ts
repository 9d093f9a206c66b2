/** What happened to one VM of the stream. Times are seconds from the stream's start. */
export interface VmHistory {
  readonly name: string;
  readonly phase: 'steady' | 'fill';
  /** CPUs that KubeVirt asks for without padding. */
  readonly need: number;
  readonly physnet?: string;
  readonly created: number;
  readonly deleted?: number;
  /** Reasons for which kubelets rejected its launchers. */
  readonly rejected: readonly string[];
  /** When a launcher of it first ran. */
  readonly ran?: number;
  /** Of the launcher that runs at the end, or that ran when the VM was deleted. */
  readonly cpus?: number;
  /** Whether all of those are on the NUMA node of its physnet. */
  readonly near?: boolean;
}

/** One stream on one fleet with one contender. */
export interface History {
  readonly vms: readonly VmHistory[];
  /** CPUs of the fleet that VMs can have. */
  readonly allocatable: number;
  readonly threads: number;
  /** Processor seconds by part of the control plane. */
  readonly processor: Readonly<Record<string, number>>;
}

/** The figures of one row. */
export interface Figures {
  readonly vms: number;
  /** Rejections by kubelets for 100 VMs. */
  readonly rejections: number;
  /** Shares are of 1. Of the VMs of the steady part. */
  readonly soon: number;
  /** Seconds to running, of the VMs of the steady part; null: that VM never ran. */
  readonly p50: number | null;
  readonly p99: number | null;
  /** Of the VMs of the fill: before the first that did not run within SOON seconds. null: there was no fill, or all did. */
  readonly beforeFirst: number | null;
  /** VMs that ran at the end. */
  readonly atEnd: number;
  /** Of the VMs with a network that ran; null: there were none. */
  readonly near: number | null;
  /** Cores without a CPU that a VM asked for, at the end, of 100. */
  readonly idleCores: number;
  /** Cores of padding for 100 cores of VMs, at the end. */
  readonly padding: number;
  readonly processor: number;
  readonly processorBy: Readonly<Record<string, number>>;
}

/** Seconds within which a user expects a VM to run. */
export const SOON = 10;

export function figuresOf({ vms, allocatable, threads, processor }: History): Figures {
  const steady = vms.filter(({ phase }) => phase === 'steady');
  const fill = vms.filter(({ phase }) => phase === 'fill');
  const waits = steady.map(waitOf).sort((a, b) => a - b);
  const isSoon = (vm: VmHistory) => waitOf(vm) <= SOON;
  const first = fill.findIndex((vm) => !isSoon(vm));
  const running = vms.filter(({ deleted, cpus }) => deleted === undefined && cpus !== undefined);
  const onNetwork = vms.filter(({ physnet, near }) => physnet !== undefined && near !== undefined);
  const [need, given] = [sum(running.map((vm) => vm.need)), sum(running.map((vm) => vm.cpus ?? 0))];
  const cores = allocatable / threads;
  // A VM's cores: an odd number of CPUs takes the whole of its last core.
  const needed = sum(running.map((vm) => Math.ceil(vm.need / threads)));
  return {
    vms: vms.length,
    rejections: (sum(vms.map(({ rejected }) => rejected.length)) / vms.length) * 100,
    soon: steady.filter(isSoon).length / steady.length,
    p50: percentile(waits, 0.5),
    p99: percentile(waits, 0.99),
    beforeFirst: first < 0 ? null : first,
    atEnd: running.length,
    near: onNetwork.length === 0 ? null : onNetwork.filter(({ near }) => near).length / onNetwork.length,
    idleCores: (Math.max(0, cores - needed) / cores) * 100,
    padding: need === 0 ? 0 : ((given - need) / need) * 100,
    processor: sum(Object.values(processor)),
    processorBy: processor,
  };
}

/** One that was deleted before it ran waited for longer than anyone. */
const waitOf = ({ created, ran }: VmHistory): number => (ran === undefined ? Number.POSITIVE_INFINITY : ran - created);

/** The nearest rank. */
function percentile(sorted: readonly number[], share: number): number | null {
  const found = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  return found === undefined || !Number.isFinite(found) ? null : found;
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
