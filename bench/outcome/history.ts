/** The history of one VM of the stream. Times are seconds since the stream's start. */
export interface VmHistory {
  readonly name: string;
  readonly phase: 'steady' | 'fill';
  /** Number of CPUs that KubeVirt requests without padding. */
  readonly need: number;
  readonly physnet?: string;
  readonly created: number;
  readonly deleted?: number;
  /** Reasons with which kubelets rejected its launchers. */
  readonly rejected: readonly string[];
  /** Time at which one of its launchers first ran. */
  readonly ran?: number;
  /** CPUs of the launcher that runs at the end, or that ran when the VM was deleted. */
  readonly cpus?: number;
  /** Whether all these CPUs are on the NUMA node of its physnet. */
  readonly near?: boolean;
}

/** The history of one stream on one fleet with one contender. */
export interface History {
  readonly vms: readonly VmHistory[];
  /** Number of CPUs of the fleet for VMs. */
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
  /** Share of VMs in the steady part that run within SOON seconds. All shares are from 0 to 1. */
  readonly soon: number;
  /** Seconds until VMs of the steady part run; null: that VM never ran. */
  readonly p50: number | null;
  readonly p99: number | null;
  /** Share of VMs in the fill before the first that did not run within SOON seconds. null: no fill, or all ran. */
  readonly beforeFirst: number | null;
  /** Number of VMs that run at the end. */
  readonly atEnd: number;
  /** Share of the running VMs with a network that are near it; null: none. */
  readonly near: number | null;
  /** Of 100 cores, those without a CPU that a VM requested, at the end. */
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
  // The cores of a VM: an odd number of CPUs uses the whole last core.
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

/** A VM that was deleted before it ran has waited the longest. */
const waitOf = ({ created, ran }: VmHistory): number => (ran === undefined ? Number.POSITIVE_INFINITY : ran - created);

/** Percentile by the nearest-rank method. */
function percentile(sorted: readonly number[], share: number): number | null {
  const found = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  return found === undefined || !Number.isFinite(found) ? null : found;
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
