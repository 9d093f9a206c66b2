import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import { allowedCpus, type ConfirmationDeps, createConfirmation, type LeftOut, step } from './confirmation.ts';
import type { CpuTarget } from './process-affinity.ts';

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

export type Targets = ReturnType<typeof createTargets>;

export function createTargets(deps: TargetsDeps, onGrowth: () => void) {
  let growth: NodeJS.Timeout | undefined;
  let lastTarget: CpuSet | undefined;
  let why: readonly string[] = [];
  let heldBack: readonly string[] = [];
  const confirmation = createConfirmation(deps);
  let vacated: readonly { readonly cpus: CpuSet; readonly until: number }[] = [];

  const cancelGrowth = () => {
    clearTimeout(growth);
    growth = undefined;
  };

  const leftOut = (pmdThreads: CpuSet) => ({
    pmd: pmdThreads.union(deps.pmdMask()),
    isolated: deps.isolated(),
    vacated: unionOf(vacated.map(({ cpus }) => cpus)),
  });

  const refresh = (view: AssignmentsView) => {
    vacated = vacated.filter(({ cpus, until }) => until > deps.now() && !cpus.isSubsetOf(view.owned));
    confirmation.see(view);
    heldBack = view.holds;
  };

  /** A target off all CPUs that have or may have an owner. */
  const avoiding = (view: AssignmentsView, out: LeftOut, stillUsed = CpuSet.EMPTY): CpuTarget => {
    const avoid = unionOf([view.owned, out.vacated, stillUsed]);
    return { avoid, otherwise: deps.machine().minus(avoid).minus(out.pmd) };
  };

  return {
    /** @param pmdThreads CPUs of poll mode driver threads */
    target(view: AssignmentsView, pmdThreads: CpuSet, mayGrow: boolean): CpuTarget {
      refresh(view);
      const out = leftOut(pmdThreads);
      const allowed = allowedCpus(view, out);
      why = allowed.why;
      if (allowed.cpus === undefined) return avoiding(view, out);
      const isKnown = view.holds.length === 0;
      const growsNow = isKnown && (mayGrow || deps.growthDelay === 0);
      const { now: next, later } = step(growsNow ? undefined : lastTarget, allowed.cpus);
      const gain = next.minus(lastTarget ?? CpuSet.EMPTY);
      const stillUsed = gain.isEmpty ? gain : confirmation.stillUsed(gain, view);
      const now = next.minus(stillUsed);
      if (!stillUsed.isEmpty) {
        const text = `${stillUsed.brief}: free in the kubelet’s state, but containers that own them may still run`;
        why = [...why, text];
        heldBack = [...heldBack, text];
        if (now.isEmpty) return avoiding(view, out, stillUsed);
      }
      lastTarget = now;
      // CPUs that were free before a source was lost may have an owner by now. The delay restarts when all sources
      // answer.
      if (later === undefined || !isKnown) cancelGrowth();
      else {
        growth ??= setTimeout(() => {
          growth = undefined;
          onGrowth();
        }, deps.growthDelay * 1000);
        why = [...why, `${later.minus(now)}: free, taken within ${deps.growthDelay} s`];
      }
      return { only: now };
    },

    /** Only moves threads off owned CPUs, and leaves the rest to another writer. */
    ownedOnly(view: AssignmentsView, pmdThreads: CpuSet): CpuTarget {
      refresh(view);
      cancelGrowth();
      lastTarget = undefined;
      why = [`${view.owned}: owned by containers; the agent leaves all other CPUs to the process that also sets them`];
      return avoiding(view, leftOut(pmdThreads));
    },

    /** Keeps the CPUs clear from now on. They return like any others: after the delay, and only without an owner. */
    vacate(cpus: CpuSet) {
      vacated = [...vacated, { cpus, until: deps.now() + VACATED_SECONDS * 1000 }];
      lastTarget = lastTarget?.minus(cpus);
    },

    /** The CPUs for a thread that must leave these CPUs and may run on no others. */
    otherwise(view: AssignmentsView, pmdThreads: CpuSet): CpuSet {
      const { pmd, vacated: cleared } = leftOut(pmdThreads);
      const rest = (view.free ?? deps.machine().minus(view.owned)).minus(cleared);
      const quiet = rest.minus(pmd);
      return quiet.isEmpty ? rest : quiet;
    },

    /** Whether the target has changed merely because time has passed. */
    isDue: () => confirmation.isDue() || vacated.some(({ until }) => until <= deps.now()),
    get lastTarget() {
      return lastTarget;
    },
    get why(): readonly string[] {
      return why;
    },
    /** Whether the containers' cgroups can be read now, to confirm that free CPUs are free. */
    get readsContainers() {
      return deps.containers() !== undefined;
    },
    /** Why the last target adds no CPUs, or has fewer than the kubelet reports as free. */
    get heldBack(): readonly string[] {
      return heldBack;
    },
    reset() {
      cancelGrowth();
      lastTarget = undefined;
      why = [];
      heldBack = [];
      vacated = [];
    },
  };
}
