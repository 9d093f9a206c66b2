import type { CpuSet } from '../../model/cpu-set.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { createGuard, untilAborted } from '../lifecycle/duty.ts';
import { createPaced } from '../lifecycle/paced.ts';
import { createContention } from './contention.ts';
import { isEnabled, watchEnabler } from './enabler.ts';
import { createOvsProcesses, type OvsProcesses, type OvsProcessesDeps } from './ovs-processes.ts';
import { foreignWriter, pollsOwned } from './problems.ts';
import { createReporting, type ReportingDeps } from './reporting.ts';
import { type OvsStatus, statusOf } from './status.ts';
import { createTargets, type Targets, type TargetsDeps } from './targets.ts';

export interface OvsAffinityDeps extends OvsProcessesDeps, TargetsDeps, ReportingDeps {
  readonly enablerFile: string;
  /** Seconds between looks that nothing asked for. They change nothing, and call little, where nothing changed. */
  readonly checkInterval: number;
  /** What happens to the masks when the agent stops. Turning the feature off always restores them. */
  readonly masksAtEnd: 'restore' | 'leave';
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  /** Calls the listener when `pmdMask` may have changed. @returns a function that ends that */
  readonly onPmdMask: (listener: () => void) => () => void;
}

export interface OvsAffinity {
  /** The duty: keeps OVS off owned CPUs while enabled. Its end gives OVS no owned CPU, disabling restores all masks. */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Moves OVS off the CPUs and returns when no thread of it may run there. Does nothing while not enabled.
   * @throws VacateError after 2 s
   */
  vacate(cpus: CpuSet, signal?: AbortSignal): Promise<void>;
  /** CPUs of OVS's poll mode driver threads, as of the last pass; empty while not enabled. */
  pmdCpus(): CpuSet;
  /** What keeps threads from where they should be; empty while not enabled. */
  problems(): readonly string[];
  /** Calls the listener when `problems` has changed. @returns a function that ends that */
  subscribe(listener: () => void): () => void;
  /** For people: every thread, where it may run, where it should and why. */
  status(): OvsStatus;
}

/** Calls `pass` for whatever changes where threads should be. @returns a function that ends that */
function followChanges(
  { assignments, onPmdMask, rundir }: OvsAffinityDeps,
  pass: (at: number) => void,
  signal: AbortSignal,
): () => void {
  const passNow = () => pass(performance.now());
  const ends = [assignments.subscribe((_view, at) => pass(at)), onPmdMask(passNow)];
  const onChange = (name: string | undefined) => {
    if (name === undefined || name.endsWith('.pid')) passNow();
  };
  watchDirectory({ path: rundir, signal, onChange });
  return () => {
    for (const end of ends) end();
  };
}

/** Gives all masks back, as the feature is off: also on CPUs that containers own. */
function restoreAll(ovsProcesses: OvsProcesses, { enablerFile, log }: OvsAffinityDeps): void {
  const { moved, problems } = ovsProcesses.restore();
  log.info({ enablerFile, restored: moved }, 'OVS CPU affinity pinning disabled');
  if (problems.length > 0)
    log.warn({ problems: problems.map(({ text }) => text) }, 'some threads did not get their CPUs back');
}

/** Containers own CPUs whether the agent runs or not, so its end never gives the threads one of those. */
function leaveAtEnd(
  ovsProcesses: OvsProcesses,
  targets: Targets,
  { assignments, masksAtEnd, log }: OvsAffinityDeps,
): void {
  const { free } = assignments.view();
  const restores = masksAtEnd === 'restore' && free !== undefined && targets.heldBack.length === 0;
  const { moved } = restores ? ovsProcesses.restoreWithin(free.minus(targets.vacated)) : ovsProcesses.leave();
  log.info({ restored: moved }, 'agent stopping; OVS threads stay off owned CPUs');
}

/**
 * Seconds until the check that distinguishes a single command from a program that continues, and finds a monitor that
 * has started.
 */
const LOOK_AGAIN = 1;

/**
 * States: off, until the enabler file is there and not empty; on, until it is not, or the duty ends. The first pass of
 * `on` remembers each thread's mask, disabling writes them back. The end of the duty leaves them: containers run on
 * while the agent is updated or crashes, or the node shuts down. While on, a change of the assignments or of the poll
 * mode drivers, a new pidfile or a due growth makes one pass over all threads, synchronously in the event's own
 * callback. The safety tick, which sees every thread in two turns, makes one only if something is not as it was left.
 * While another process keeps changing masks, passes only keep the threads off owned CPUs until it stops.
 *
 * Invariant: a pass never gives a thread a CPU that the view calls owned, nor one vacated for a container that starts.
 */
export function createOvsAffinity(deps: OvsAffinityDeps): OvsAffinity {
  const { assignments, enablerFile, log, metrics, events } = deps;
  const ovsProcesses = createOvsProcesses(deps);
  const reporting = createReporting(deps);
  /** The end of the grow debounce, under the guard of the run that is on. */
  let grow = () => {};
  const targets = createTargets(deps, () => grow());
  const contention = createContention(deps.now);
  /** Whether the last pass left the exact set to another writer. */
  let yields = false;
  /** A look, under the guard of the run that is on. */
  let lookAgain = () => {};
  const again = createPaced({ work: () => lookAgain(), settle: LOOK_AGAIN, rest: 0 });
  let enabled = false;

  /** `at`: when this process heard of what makes the pass necessary, in monotonic milliseconds. */
  const pass = (at: number, mayGrow = false) => {
    if (!enabled) return;
    const view = assignments.view();
    const snapshot = ovsProcesses.snapshot();
    const { pmdCpus: pmd } = snapshot;
    yields = contention.isContended;
    const target = yields ? targets.ownedOnly(view, pmd) : targets.target(view, pmd, mayGrow);
    const { moved, displaced, problems } = ovsProcesses.apply(target, snapshot);
    contention.note(displaced);
    metrics.ovsContended.set(contention.isContended ? 1 : 0);
    if (contention.isSuspected || ovsProcesses.isStarting()) again.soon();
    reporting.moved(target, moved, view, at);
    const others = contention.isContended ? [foreignWriter(enablerFile)] : [];
    reporting.problems([...problems, ...pollsOwned(pmd.intersect(view.owned)), ...others]);
    reporting.reserved(view.reserved);
  };

  const reset = () => {
    again.cancel();
    metrics.ovsContended.set(0);
    yields = false;
    targets.reset();
    reporting.reset();
  };

  const disable = () => {
    reset();
    restoreAll(ovsProcesses, deps);
  };

  const look = () => {
    const wanted = isEnabled(enablerFile);
    if (wanted === undefined || wanted === enabled) return;
    enabled = wanted;
    metrics.ovsEnabled.set(wanted ? 1 : 0);
    if (!wanted) {
      disable();
      events.disabled();
      return;
    }
    log.info({ enablerFile }, 'Starting OVS daemon CPU pinning');
    events.enabled(enablerFile);
    ovsProcesses.seeMachine();
    pass(performance.now(), true);
  };

  const end = () => {
    if (!enabled) return;
    enabled = false;
    metrics.ovsEnabled.set(0);
    leaveAtEnd(ovsProcesses, targets, deps);
    reset();
  };

  const tick = () => {
    look();
    if (!enabled) return;
    reporting.unknown(targets.heldBack);
    const isOver = yields && !contention.isContended;
    if (!isOver && !targets.isDue() && ovsProcesses.isAsLeft()) return;
    ovsProcesses.seeMachine();
    pass(performance.now());
  };

  return {
    async run(signal) {
      const guard = createGuard();
      grow = guard(() => pass(performance.now(), true));
      lookAgain = guard(tick);
      look();
      // What an agent before this one did is undone here, should the feature have been turned off meanwhile.
      if (isEnabled(enablerFile) === false) disable();
      watchEnabler(enablerFile, guard(look), signal);
      const unsubscribe = followChanges(deps, guard(pass), signal);
      const timer = setInterval(guard(tick), deps.checkInterval * 1000);
      try {
        await Promise.race([untilAborted(signal), guard.failed]);
      } finally {
        clearInterval(timer);
        unsubscribe();
        end();
      }
    },

    async vacate(cpus, signal) {
      if (!enabled || cpus.isEmpty) return;
      targets.vacate(cpus);
      try {
        await ovsProcesses.vacate(cpus, targets.otherwise(assignments.view(), ovsProcesses.pmdCpus()), signal);
      } catch (error) {
        metrics.ovsErrors.inc({ cause: 'not-vacated' });
        events.notVacated((error as Error).message);
        throw error;
      }
    },

    pmdCpus: () => ovsProcesses.pmdCpus(),
    problems: () => reporting.current.map(({ text }) => text),
    subscribe: reporting.subscribe,
    status: () => {
      const { sources } = assignments.view();
      return statusOf({ enabled, enablerFile, ovsProcesses, targets, sources, problems: reporting.current });
    },
  };
}
