import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import type { ContainerCpus } from '../processes/cgroup-tree.ts';

/** Seconds until the next check of CPUs that running containers hold although the kubelet reports them as free. */
const RECHECK_SECONDS = 10;
/** Seconds that formerly owned CPUs stay unused if no cgroup shows whether their owner has ended. */
const UNCONFIRMED_SECONDS = 60;

export interface ConfirmationDeps {
  /** The cpusets of running containers; undefined where the kubelet's cgroups cannot be read. */
  readonly containers: () => ContainerCpus | undefined;
  /** Monotonic milliseconds. */
  readonly nowSeconds: () => number;
}

/**
 * Asks the kernel whether CPUs are free: a kubelet that restarts or has lost its state lists no pods, and writes that
 * all CPUs are shared, while its containers keep running.
 *
 * Owner: the view, which says what was owned. Age and end: a released CPU counts for a minute. CPUs that a container
 * still uses are checked again after ten seconds.
 */
export class Confirmation {
  readonly #containers: ConfirmationDeps['containers'];
  readonly #nowSeconds: () => number;
  #owned = CpuSet.EMPTY;
  #freed: readonly { readonly cpus: CpuSet; readonly until: number }[] = [];
  #dueAt = Number.POSITIVE_INFINITY;

  constructor({ containers, nowSeconds }: ConfirmationDeps) {
    this.#containers = containers;
    this.#nowSeconds = nowSeconds;
  }

  observe(view: AssignmentsView): void {
    const released = this.#owned.minus(view.owned);
    this.#owned = view.owned;
    this.#freed = this.#freed.filter(({ until }) => until > this.#nowSeconds());
    if (released.isEmpty) return;
    this.#freed = [...this.#freed, { cpus: released, until: this.#nowSeconds() + UNCONFIRMED_SECONDS }];
  }

  /** Those of the CPUs that a running container is confined to; or, if unknown, that had an owner recently. */
  stillUsed(cpus: CpuSet, view: AssignmentsView): CpuSet {
    const running = this.#containers();
    const busy =
      running === undefined ? unionOf(this.#freed.map((release) => release.cpus)) : confinedTo(cpus, running, view);
    const stillUsed = busy.intersect(cpus);
    this.#dueAt = stillUsed.isEmpty ? Number.POSITIVE_INFINITY : this.#nowSeconds() + RECHECK_SECONDS;
    return stillUsed;
  }

  isDue(): boolean {
    return this.#dueAt <= this.#nowSeconds();
  }
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

/** CPUs without an owner that ordinary threads of Open vSwitch must not use, by reason. */
export interface LeftOut {
  /** CPUs of poll mode drivers, by their threads and by `pmd-cpu-mask`. */
  readonly pmd: CpuSet;
  /** CPUs of isolcpus, if the setting excludes them; the kernel does not balance threads across them. */
  readonly isolated: CpuSet;
  /** CPUs promised to a container that is about to start, even before the view shows it. */
  readonly vacated: CpuSet;
}

/**
 * The CPUs that Open vSwitch may use, or undefined if unknown; and the reasons, for display. It leaves out isolated and
 * polled CPUs only if others remain: no CPU at all would be worse.
 */
export function allowedCpus({ free, owned, holds }: AssignmentsView, { pmd, isolated, vacated }: LeftOut) {
  const why: string[] = [];
  const say = (cpus: CpuSet, text: string) => {
    if (!cpus.isEmpty) why.push(`${cpus}: ${text}`);
  };
  say(owned, 'owned by containers');
  say(vacated.minus(owned), 'vacated for a container that starts');
  say(pmd, 'poll mode drivers');
  if (free === undefined) {
    why.push(`only avoiding owned CPUs, because some owners are unknown: ${holds.join('; ')}`);
    return { cpus: undefined, why };
  }
  if (holds.length > 0) why.push(`using no more CPUs, because some owners are unknown: ${holds.join('; ')}`);
  const clear = free.minus(vacated);
  const open = clear.minus(pmd);
  if (open.isEmpty) return { cpus: clear, why };
  const quiet = open.minus(isolated);
  if (quiet.isEmpty) return { cpus: open, why };
  say(open.intersect(isolated), 'isolated');
  return { cpus: quiet, why };
}

/**
 * Open vSwitch leaves a CPU at once and takes a free one later: ovs-vswitchd creates its threads again and drops its
 * flows when the number of its CPUs changes. The first set, and one that shares no CPU with the last, applies at once.
 */
export function step(applied: CpuSet | undefined, free: CpuSet) {
  const staying = applied?.intersect(free) ?? CpuSet.EMPTY;
  if (staying.isEmpty || staying.equals(free)) return { now: free, later: undefined };
  return { now: staying, later: free };
}
