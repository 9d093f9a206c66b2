import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import { Throttle } from '../lifecycle/duty.ts';
import type { ContainerCpus } from '../processes/cgroup-tree.ts';
import type { CpuTarget } from './process-affinity.ts';

/** Seconds until the next check of CPUs that running containers hold although the kubelet reports them as free. */
const RECHECK_SECONDS = 10;
/** Seconds that formerly owned CPUs stay unused if no cgroup shows whether their owner has ended. */
const UNCONFIRMED_SECONDS = 60;

interface ConfirmationDeps {
  /** The cpusets of running containers; undefined where the kubelet's cgroups cannot be read. */
  readonly containers: () => ContainerCpus | undefined;
  /** Monotonic. */
  readonly nowSeconds: () => number;
}

/** `until`: monotonic seconds. */
interface Temporary {
  readonly cpus: CpuSet;
  readonly until: number;
}

/**
 * Asks the kernel whether CPUs are free: a kubelet that restarts or has lost its state lists no pods, and writes that
 * all CPUs are shared, while its containers keep running.
 *
 * Owner: the view, which says what was owned. Age and end: a released CPU counts for a minute. CPUs that a container
 * still uses are checked again after ten seconds.
 */
export class Confirmation {
  readonly #deps: ConfirmationDeps;
  #owned = CpuSet.EMPTY;
  #freed: readonly Temporary[] = [];
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(deps: ConfirmationDeps) {
    this.#deps = deps;
  }

  observe(view: AssignmentsView): void {
    const now = this.#deps.nowSeconds();
    const released = { cpus: this.#owned.minus(view.owned), until: now + UNCONFIRMED_SECONDS };
    this.#owned = view.owned;
    this.#freed = [...this.#freed, released].filter(({ cpus, until }) => until > now && !cpus.isEmpty);
  }

  /** Those of the CPUs that a running container is confined to; or, if unknown, that had an owner recently. */
  stillUsed(cpus: CpuSet, view: AssignmentsView): CpuSet {
    const running = this.#deps.containers();
    const busy =
      running === undefined ? unionOf(this.#freed.map((freed) => freed.cpus)) : confinedTo(cpus, running, view);
    const stillUsed = busy.intersect(cpus);
    this.#dueAt = stillUsed.isEmpty ? Number.POSITIVE_INFINITY : this.#deps.nowSeconds() + RECHECK_SECONDS;
    return stillUsed;
  }

  isDue(): boolean {
    return this.#dueAt <= this.#deps.nowSeconds();
  }
}

/**
 * The union of the cpusets of containers with exclusive CPUs: sets that hold some of the CPUs in question, and
 * otherwise only owned CPUs. The kubelet's shared pool is not one of them; containers of pods that are not Guaranteed
 * always run there.
 */
function confinedTo(cpus: CpuSet, { guaranteed, others }: ContainerCpus, view: AssignmentsView): CpuSet {
  const possible = cpus.union(view.owned);
  const isPool = (set: CpuSet) => [view.free, view.pool, ...others].some((shared) => shared?.equals(set) === true);
  return unionOf(guaranteed.filter((set) => !isPool(set) && set.intersects(cpus) && set.isSubsetOf(possible)));
}

/** CPUs without an owner that ordinary threads of Open vSwitch must not use, by reason. */
interface LeftOut {
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

/** Seconds that vacated CPUs are kept clear while no source has reported their owner. */
const VACATED_SECONDS = 10;

export interface TargetsDeps extends ConfirmationDeps {
  /** Seconds that newly free CPUs stay unused, so that several growths become one. 0 uses them at once. */
  readonly growthDelay: number;
  readonly isolated: () => CpuSet;
  /** CPUs that the configuration of the switch or of the node gives to poll mode drivers. */
  readonly pmdMask: () => CpuSet;
  readonly machine: () => CpuSet;
}

/**
 * The CPUs that Open vSwitch's threads should have. They leave a CPU at once and take a free one later: ovs-vswitchd
 * creates its threads again and drops its flows when the number of its CPUs changes. The first set, and one that shares
 * no CPU with the last, applies at once.
 *
 * Owner: the passes; `vacate` of a container's start. Age: the last target is that of the last pass. Vacated CPUs stay
 * clear until the view has shown their owner, at most for ten seconds. End: `reset`.
 */
export class Targets {
  readonly #deps: TargetsDeps;
  readonly #growth: Throttle;
  readonly #confirmation: Confirmation;
  #lastTarget: CpuSet | undefined;
  #why: readonly string[] = [];
  #heldBack: readonly string[] = [];
  #vacated: readonly Temporary[] = [];

  /** @param onGrowth called when the target may take CPUs that have been free for the delay */
  constructor(deps: TargetsDeps, onGrowth: () => void) {
    this.#deps = deps;
    this.#growth = new Throttle(onGrowth, deps.growthDelay, 0);
    this.#confirmation = new Confirmation(deps);
  }

  /** @param pmdThreads CPUs of poll mode driver threads */
  target(view: AssignmentsView, pmdThreads: CpuSet, mayGrow: boolean): CpuTarget {
    this.#refresh(view);
    const leftOut = this.#leftOut(pmdThreads);
    const allowed = allowedCpus(view, leftOut);
    this.#why = allowed.why;
    if (allowed.cpus === undefined) return this.#avoiding(view, leftOut);
    const { growthDelay } = this.#deps;
    const isKnown = view.holds.length === 0;
    const growsNow = isKnown && (mayGrow || growthDelay === 0);
    const staying = growsNow ? undefined : this.#lastTarget?.intersect(allowed.cpus);
    const next = staying === undefined || staying.isEmpty ? allowed.cpus : staying;
    const gain = next.minus(this.#lastTarget ?? CpuSet.EMPTY);
    const stillUsed = gain.isEmpty ? gain : this.#confirmation.stillUsed(gain, view);
    const now = next.minus(stillUsed);
    if (!stillUsed.isEmpty) {
      const text = `${stillUsed.brief}: free in the kubelet’s state, but containers that own them may still run`;
      this.#why = [...this.#why, text];
      this.#heldBack = [...this.#heldBack, text];
      if (now.isEmpty) return this.#avoiding(view, leftOut, stillUsed);
    }
    this.#lastTarget = now;
    // CPUs that were free before a source was lost may have an owner by now. The delay restarts when all sources
    // answer.
    if (!isKnown || next.equals(allowed.cpus)) this.#growth.cancel();
    else {
      this.#growth.soon();
      this.#why = [...this.#why, `${allowed.cpus.minus(now)}: free, taken within ${growthDelay} s`];
    }
    return { only: now };
  }

  /** Only moves threads off owned CPUs, and leaves the rest to another writer. */
  ownedOnly(view: AssignmentsView, pmdThreads: CpuSet): CpuTarget {
    this.#refresh(view);
    this.#growth.cancel();
    this.#lastTarget = undefined;
    const reason = 'owned by containers; the agent leaves all other CPUs to the process that also sets them';
    this.#why = [`${view.owned}: ${reason}`];
    return this.#avoiding(view, this.#leftOut(pmdThreads));
  }

  /** Keeps the CPUs clear from now on. They return like any others: after the delay, and only without an owner. */
  vacate(cpus: CpuSet): void {
    this.#vacated = [...this.#vacated, { cpus, until: this.#deps.nowSeconds() + VACATED_SECONDS }];
    this.#lastTarget = this.#lastTarget?.minus(cpus);
  }

  /** The CPUs for a thread that must leave these CPUs and may run on no others. */
  otherwise(view: AssignmentsView, pmdThreads: CpuSet): CpuSet {
    const { pmd, vacated } = this.#leftOut(pmdThreads);
    const rest = (view.free ?? this.#deps.machine().minus(view.owned)).minus(vacated);
    const quiet = rest.minus(pmd);
    return quiet.isEmpty ? rest : quiet;
  }

  /** Whether the target has changed merely because time has passed. */
  isDue(): boolean {
    return this.#confirmation.isDue() || this.#vacated.some(({ until }) => until <= this.#deps.nowSeconds());
  }

  get lastTarget(): CpuSet | undefined {
    return this.#lastTarget;
  }

  get why(): readonly string[] {
    return this.#why;
  }

  /** Whether the containers' cgroups can be read now, to confirm that free CPUs are free. */
  get readsContainers(): boolean {
    return this.#deps.containers() !== undefined;
  }

  /** Why the last target adds no CPUs, or has fewer than the kubelet reports as free. */
  get heldBack(): readonly string[] {
    return this.#heldBack;
  }

  reset(): void {
    this.#growth.cancel();
    this.#lastTarget = undefined;
    this.#why = [];
    this.#heldBack = [];
    this.#vacated = [];
  }

  #refresh(view: AssignmentsView): void {
    const now = this.#deps.nowSeconds();
    this.#vacated = this.#vacated.filter(({ cpus, until }) => until > now && !cpus.isSubsetOf(view.owned));
    this.#confirmation.observe(view);
    this.#heldBack = view.holds;
  }

  #leftOut(pmdThreads: CpuSet): LeftOut {
    return {
      pmd: pmdThreads.union(this.#deps.pmdMask()),
      isolated: this.#deps.isolated(),
      vacated: unionOf(this.#vacated.map(({ cpus }) => cpus)),
    };
  }

  /** A target off all CPUs that have or may have an owner. */
  #avoiding(view: AssignmentsView, { pmd, vacated }: LeftOut, stillUsed = CpuSet.EMPTY): CpuTarget {
    const avoid = unionOf([view.owned, vacated, stillUsed]);
    return { avoid, otherwise: this.#deps.machine().minus(avoid).minus(pmd) };
  }
}
