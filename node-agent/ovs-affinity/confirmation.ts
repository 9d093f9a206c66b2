import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import type { ContainerCpus } from '../processes/cgroup-tree.ts';

/** Seconds until the next check of CPUs that running containers hold although the kubelet reports them as free. */
const AGAIN = 10;
/** Seconds that formerly owned CPUs stay unused if no cgroup shows whether their owner has ended. */
const UNCONFIRMED_FOR = 60;

export interface ConfirmationDeps {
  /** The cpusets of running containers; undefined where the kubelet's cgroups cannot be read. */
  readonly containers: () => ContainerCpus | undefined;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/**
 * Checks with the kernel whether CPUs that the kubelet reports as free are free. A kubelet that restarts or that lost
 * its state lists no pods, for a while or permanently, and writes a checkpoint in which all CPUs are shared, while its
 * containers keep running.
 */
export function createConfirmation({ containers, now }: ConfirmationDeps) {
  let owned = CpuSet.EMPTY;
  let freed: readonly { readonly cpus: CpuSet; readonly until: number }[] = [];
  let dueAt = Number.POSITIVE_INFINITY;

  return {
    /** Records the owners. Call it with each view. */
    see(view: AssignmentsView) {
      const released = owned.minus(view.owned);
      owned = view.owned;
      freed = freed.filter(({ until }) => until > now());
      if (!released.isEmpty) freed = [...freed, { cpus: released, until: now() + UNCONFIRMED_FOR * 1000 }];
    },

    /**
     * Returns those of the CPUs that a running container is confined to. Where that is not visible, it returns those that
     * had an owner recently.
     */
    held(cpus: CpuSet, view: AssignmentsView): CpuSet {
      const running = containers();
      const busy = running === undefined ? unionOf(freed.map((one) => one.cpus)) : confinedTo(cpus, running, view);
      const held = busy.intersect(cpus);
      dueAt = held.isEmpty ? Number.POSITIVE_INFINITY : now() + AGAIN * 1000;
      return held;
    },

    /** Whether held CPUs need another check. */
    isDue: () => dueAt <= now(),
  };
}

/**
 * The union of the cpusets of containers with exclusive CPUs: sets that hold some of the CPUs in question, and
 * otherwise only owned CPUs. The kubelet's shared pool is not one of them; containers of pods that are not Guaranteed
 * always run there.
 */
function confinedTo(
  cpus: CpuSet,
  { guaranteed, others }: ContainerCpus,
  { free, owned, pool }: AssignmentsView,
): CpuSet {
  const pools = [free, pool, ...others];
  const possible = cpus.union(owned);
  return unionOf(
    guaranteed.filter((set) => {
      const isPool = pools.some((shared) => shared?.equals(set) === true);
      return !isPool && set.intersects(cpus) && set.isSubsetOf(possible);
    }),
  );
}
