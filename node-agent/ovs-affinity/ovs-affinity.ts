import type { CpuSet } from '../../model/cpu-set.ts';
import type { Logger } from '../../runtime/log.ts';
import type { Assignments } from '../assignments/assignments.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import { createGuard, untilAborted } from '../duty.ts';
import { watchDirectory } from '../watch-directory.ts';
import { type CrewDeps, createCrew } from './crew.ts';
import { isEnabled, watchEnabler } from './enabler.ts';
import { step } from './goal.ts';
import type { Goal } from './keeper.ts';

/** Seconds between passes that nothing asked for. They change nothing where nothing changed. */
const SAFETY = 5;

export interface OvsAffinityDeps extends CrewDeps {
  readonly enablerFile: string;
  /** Seconds that newly free CPUs are left alone, so that many growths become one. 0 takes them at once. */
  readonly growthDelay: number;
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  readonly log: Logger;
}

export interface OvsAffinity {
  /** The duty: keeps OVS off owned CPUs while enabled; at the end every thread has its own mask back. */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Moves OVS off the CPUs and returns when no thread of it may run there. Does nothing while not enabled.
   * @throws VacateError after 2 s
   */
  vacate(cpus: CpuSet, signal?: AbortSignal): Promise<void>;
  /** CPUs of OVS's poll mode driver threads; empty while not enabled. */
  pmdCpus(): CpuSet;
}

/**
 * States: off, until the enabler file is there and not empty; on, until it is not, or the duty ends. The first pass of
 * `on` remembers each thread's mask, leaving `on` writes them back. While on, a change of the assignments, a new
 * pidfile or the safety tick makes one pass over all threads, synchronously in the event's own callback.
 *
 * Invariant: a pass never gives a thread a CPU that the view calls owned.
 */
export function createOvsAffinity(deps: OvsAffinityDeps): OvsAffinity {
  const { assignments, enablerFile, growthDelay, log, metrics } = deps;
  const crew = createCrew(deps);
  let enabled = false;
  let applied: CpuSet | undefined;
  let growth: NodeJS.Timeout | undefined;
  let lastProblems = '';
  /** `grow` under the guard of the run that is on. */
  let guardedGrow = () => {};

  const cancelGrowth = () => {
    clearTimeout(growth);
    growth = undefined;
  };

  const goalOf = ({ free, owned }: AssignmentsView, mayGrow: boolean): Goal => {
    // Never known yet: nothing is taken, but what is known to be owned is left.
    if (free === undefined) return { avoid: owned, otherwise: deps.machine().minus(owned) };
    const { now, later } = step(mayGrow ? undefined : applied, free);
    applied = now;
    if (later === undefined) cancelGrowth();
    else growth ??= setTimeout(guardedGrow, growthDelay * 1000);
    return { only: now };
  };

  const grow = () => {
    growth = undefined;
    pass(performance.now(), true);
  };

  /** `at`: when this process heard of what makes the pass necessary, in monotonic milliseconds. */
  const pass = (at: number, mayGrow = growthDelay === 0) => {
    if (!enabled) return;
    const { goal, moved, problems } = crew.apply(goalOf(assignments.view(), mayGrow));
    if (moved > 0) {
      const millis = performance.now() - at;
      metrics.ovsMoveSeconds.observe(millis / 1000);
      const where = 'only' in goal ? { cpus: goal.only } : { avoided: goal.avoid };
      log.info({ ...where, threads: moved, millis: Math.round(millis * 1000) / 1000 }, 'ovs threads moved');
    }
    say(problems);
  };

  const say = (problems: readonly string[]) => {
    const text = problems.join('; ');
    if (text !== '' && text !== lastProblems) log.warn({ problems }, 'ovs affinity is not complete');
    if (text === '' && lastProblems !== '') log.info('ovs affinity is complete again');
    lastProblems = text;
  };

  const enable = (wanted: boolean) => {
    if (wanted === enabled) return;
    enabled = wanted;
    metrics.ovsEnabled.set(wanted ? 1 : 0);
    if (wanted) {
      log.info({ enablerFile, reserved: assignments.view().reserved }, 'Starting OVS daemon CPU pinning');
      return pass(performance.now(), true);
    }
    cancelGrowth();
    applied = undefined;
    lastProblems = '';
    log.info({ enablerFile, restored: crew.restore() }, 'OVS CPU affinity pinning disabled');
  };

  return {
    async run(signal) {
      const guard = createGuard();
      const look = () => enable(isEnabled(enablerFile));
      look();
      if (!enabled) log.info({ enablerFile }, 'OVS CPU affinity pinning disabled');
      const unsubscribe = assignments.subscribe(guard((_view, at) => pass(at)));
      watchEnabler(enablerFile, guard(look), signal);
      watchDirectory({ path: deps.rundir, signal, onChange: guard(() => pass(performance.now())) });
      const tick = guard(() => {
        look();
        pass(performance.now());
      });
      const timer = setInterval(tick, SAFETY * 1000);
      guardedGrow = guard(grow);
      try {
        await Promise.race([untilAborted(signal), guard.failed]);
      } finally {
        clearInterval(timer);
        unsubscribe();
        enable(false);
      }
    },

    async vacate(cpus, signal) {
      if (!enabled || cpus.isEmpty) return;
      // What is vacated comes back as growth does: late, and only if the view still calls it free.
      applied = applied?.minus(cpus);
      const { free, owned } = assignments.view();
      await crew.vacate(cpus, free ?? deps.machine().minus(owned), signal);
    },

    pmdCpus: () => crew.pmdCpus(),
  };
}
