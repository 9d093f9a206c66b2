import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { OvsStatus } from '../../model/agent-status.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { Guard, Throttle } from '../lifecycle/duty.ts';
import { createContention } from './contention.ts';
import { createOvsProcesses, type OvsProcesses, type OvsProcessesDeps } from './ovs-processes.ts';
import { foreignWriter, pollsOwned } from './problems.ts';
import { createReporting, type ReportingDeps, statusOf } from './reporting.ts';
import { createTargets, type TargetsDeps } from './targets.ts';

export interface OvsAffinityDeps extends OvsProcessesDeps, TargetsDeps, ReportingDeps {
  readonly enablerFile: string;
  /** Seconds between periodic checks. If nothing changed, a check changes nothing and makes few system calls. */
  readonly checkInterval: number;
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  /** Calls the listener when `pmdMask` may have changed. @returns a function that ends the subscription */
  readonly onPmdMask: (listener: () => void) => () => void;
}

export type OvsAffinity = ReturnType<typeof createOvsAffinity>;

/**
 * Seconds until the check that distinguishes a single command from a program that keeps changing masks, and that finds
 * a monitor which has started.
 */
const RECHECK_SECONDS = 1;

/**
 * States: off, until the enabler file exists and is not empty; on, until it does not, or the duty ends. The first pass
 * of `on` saves each thread's mask, and disabling restores the masks. The end of the duty does not: containers keep
 * running while the agent is updated or crashes, or while the node shuts down. While on, each of these events causes
 * one pass over all threads, synchronously in its own callback: a change of the assignments or of the poll mode
 * drivers, a new pidfile, and a due growth. The periodic check, which covers every thread in four turns, makes a pass
 * only if a thread is not as the last pass left it. While another process keeps changing masks, passes only keep the
 * threads off owned CPUs until it stops.
 *
 * Invariant: a pass never gives a thread a CPU that the view reports as owned, nor one vacated for a starting
 * container.
 */
export function createOvsAffinity(deps: OvsAffinityDeps) {
  const { assignments, enablerFile, log, metrics, events } = deps;
  const ovsProcesses = createOvsProcesses(deps);
  const reporting = createReporting(deps);
  /** A due growth, and a check, under the guard of the current run. */
  let grow = () => {};
  let recheck = () => {};
  const targets = createTargets(deps, () => grow());
  const contention = createContention(deps.now);
  /** Whether the last pass left the exact set to another writer. */
  let yields = false;
  const again = new Throttle(() => recheck(), RECHECK_SECONDS, 0);
  let enabled = false;

  /** `at`: when this process learned of the reason for the pass, in monotonic milliseconds. */
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

  const reconcileEnabler = () => {
    const isRequested = isEnabled(enablerFile);
    if (isRequested === undefined || isRequested === enabled) return;
    enabled = isRequested;
    metrics.ovsEnabled.set(isRequested ? 1 : 0);
    if (!isRequested) {
      disable();
      return events.disabled();
    }
    log.info({ enablerFile }, 'Starting OVS daemon CPU pinning');
    events.enabled(enablerFile);
    ovsProcesses.seeMachine();
    pass(performance.now(), true);
  };

  /** Leaves the masks when the agent stops: containers own CPUs whether the agent runs or not. */
  const end = () => {
    if (!enabled) return;
    enabled = false;
    metrics.ovsEnabled.set(0);
    ovsProcesses.leave();
    log.info('agent stopping; OVS threads stay off owned CPUs');
    reset();
  };

  const tick = () => {
    reconcileEnabler();
    if (!enabled) return;
    reporting.unknown(targets.heldBack);
    const isOver = yields && !contention.isContended;
    if (!isOver && !targets.isDue() && ovsProcesses.isAsLeft()) return;
    ovsProcesses.seeMachine();
    pass(performance.now());
  };

  return {
    /** The duty: keeps OVS off owned CPUs while enabled. Its end gives OVS no owned CPU; disabling restores all masks. */
    async run(signal: AbortSignal) {
      const guard = new Guard();
      grow = guard.wrap(() => pass(performance.now(), true));
      recheck = guard.wrap(tick);
      reconcileEnabler();
      // The feature may have been disabled after an earlier agent was killed: undo what that agent did.
      if (isEnabled(enablerFile) === false) disable();
      watchEnabler(enablerFile, guard.wrap(reconcileEnabler), signal);
      const ends = followChanges(deps, guard.wrap(pass), signal);
      const timer = setInterval(guard.wrap(tick), deps.checkInterval * 1000);
      try {
        await guard.until(signal);
      } finally {
        clearInterval(timer);
        for (const unsubscribe of ends) unsubscribe();
        end();
      }
    },

    /**
     * Moves OVS off the CPUs and returns when none of its threads may run there. Does nothing while disabled.
     * @throws VacateError after 2 s
     */
    async vacate(cpus: CpuSet, signal?: AbortSignal) {
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

    /** CPUs of OVS's poll mode driver threads at the last pass; empty while disabled. */
    pmdCpus: (): CpuSet => ovsProcesses.pmdCpus(),
    /** The reasons why threads are not on their CPUs; empty while disabled. */
    problems: (): readonly string[] => reporting.current.map(({ text }) => text),
    /** Calls the listener when `problems` has changed. @returns a function that ends the subscription */
    subscribe: reporting.subscribe,
    /** For display: every thread, its current and wanted CPUs, and the reasons. */
    status: (): OvsStatus => {
      const { sources } = assignments.view();
      return statusOf({ enabled, enablerFile, ovsProcesses, targets, sources, problems: reporting.current });
    },
  };
}

/** Calls `pass` after each change that affects the threads' CPUs. @returns functions that end the subscriptions */
function followChanges(
  { assignments, onPmdMask, rundir }: OvsAffinityDeps,
  pass: (at: number) => void,
  signal: AbortSignal,
) {
  const passNow = () => pass(performance.now());
  const onChange = (name: string | undefined) => {
    if (name === undefined || name.endsWith('.pid')) passNow();
  };
  watchDirectory({ path: rundir, signal, onChange });
  return [assignments.subscribe((_view, at) => pass(at)), onPmdMask(passNow)];
}

/** Restores all masks because the feature was disabled, even to CPUs that containers own. */
function restoreAll(ovsProcesses: OvsProcesses, { enablerFile, log }: OvsAffinityDeps): void {
  const { moved, problems } = ovsProcesses.restore();
  log.info({ enablerFile, restored: moved }, 'OVS CPU affinity pinning disabled');
  if (problems.length > 0)
    log.warn({ problems: problems.map(({ text }) => text) }, 'some threads did not get their CPUs back');
}

/** Error codes of a missing file. With any other error, the state of the file is unknown. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

/** Whether the enabler file exists and is not empty; undefined if that cannot be determined now (EIO, EACCES, …). */
export function isEnabled(file: string): boolean | undefined {
  try {
    const stats = statSync(file);
    return stats.isFile() && stats.size > 0;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return ABSENT.has(code) ? false : undefined;
  }
}

/** Calls `onChange` whenever the file may have been created, filled, emptied, replaced or removed. */
export function watchEnabler(file: string, onChange: () => void, signal: AbortSignal): void {
  watchDirectory({
    path: dirname(file),
    signal,
    onChange: (name) => {
      if (name === undefined || name === basename(file)) onChange();
    },
  });
}
