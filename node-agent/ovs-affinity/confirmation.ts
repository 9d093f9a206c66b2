import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import type { ContainerCpus } from '../processes/cgroup-tree.ts';

/** Seconds until CPUs that running containers hold, against what the kubelet says, are looked at again. */
const AGAIN = 10;
/** Seconds that CPUs which had an owner are left alone where no cgroup can be read to see that it has ended. */
const UNCONFIRMED_FOR = 60;

/**
 * Asks the kernel whether CPUs that the kubelet calls free are. A kubelet that restarts, or that lost its state, lists
 * no pods for a while, or for good, and writes a checkpoint in which everything is shared; its containers run on.
 */
export interface Confirmation {
  /** Notes who owns what. To be called with each view. */
  see(view: AssignmentsView): void;
  /** Those of the CPUs that a running container is confined to, or, where that cannot be seen, had an owner lately. */
  held(cpus: CpuSet, view: AssignmentsView): CpuSet;
  /** Whether CPUs that were held should be looked at again. */
  isDue(): boolean;
}

export interface ConfirmationDeps {
  /** The cpusets of running containers; undefined where the kubelet's cgroups cannot be read. */
  readonly containers: () => ContainerCpus | undefined;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

export function createConfirmation({ containers, now }: ConfirmationDeps): Confirmation {
  let owned = CpuSet.EMPTY;
  let freed: readonly { readonly cpus: CpuSet; readonly until: number }[] = [];
  let dueAt = Number.POSITIVE_INFINITY;

  return {
    see(view) {
      const released = owned.minus(view.owned);
      owned = view.owned;
      freed = freed.filter(({ until }) => until > now());
      if (!released.isEmpty) freed = [...freed, { cpus: released, until: now() + UNCONFIRMED_FOR * 1000 }];
    },

    held(cpus, view) {
      const running = containers();
      const busy = running === undefined ? unionOf(freed.map((one) => one.cpus)) : confinedTo(cpus, running, view);
      const held = busy.intersect(cpus);
      dueAt = held.isEmpty ? Number.POSITIVE_INFINITY : now() + AGAIN * 1000;
      return held;
    },

    isDue: () => dueAt <= now(),
  };
}

/**
 * The sets of containers with CPUs of their own: they hold some of the CPUs in question, and otherwise owned ones at
 * most. The kubelet's shared pool is none; the containers of other pods than Guaranteed ones are always on that.
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
