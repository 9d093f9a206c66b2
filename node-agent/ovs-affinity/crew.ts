import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { sleep } from '../../runtime/time.ts';
import type { AgentMetrics } from '../metrics.ts';
import { findDaemons, isFound, isMissing, type MissingDaemon } from './daemons.ts';
import { createKeeper, type Goal, type Keeper, type KeeperDeps, type PassResult } from './keeper.ts';

/** Seconds that a container's start may wait for the threads to leave its CPUs. */
const VACATE_DEADLINE = 2;
const VACATE_PAUSE = 0.02;

/** Threads that stayed on CPUs they had to leave, for longer than a container's start may be held back. */
export class VacateError extends PlumblineError {
  constructor(cpus: CpuSet, staying: readonly string[]) {
    super('vacate', `Open vSwitch does not leave CPUs ${cpus}: ${staying.join(', ')}`);
  }
}

export interface CrewDeps extends KeeperDeps {
  /** Where the daemons put their pidfiles. */
  readonly rundir: string;
  readonly metrics: AgentMetrics;
}

export interface CrewResult {
  /** What was applied. */
  readonly goal: Goal;
  /** Threads whose mask was changed. */
  readonly moved: number;
  /** For people: what is not managed, held back or refused. */
  readonly problems: readonly string[];
}

/** The keepers of both daemons, made anew as daemons come and go. */
export interface Crew {
  /** One pass over every thread; the CPUs of poll mode drivers are left out of the goal. */
  apply(goal: Goal): CrewResult;
  /** Gives every thread its own mask back and forgets them. @returns the number of threads changed */
  restore(): number;
  /**
   * Returns when no thread may run on the CPUs. `otherwise`: where those go that may run on no other.
   * @throws VacateError after 2 s
   */
  vacate(cpus: CpuSet, otherwise: CpuSet, signal?: AbortSignal): Promise<void>;
  /** CPUs of poll mode driver threads. */
  pmdCpus(): CpuSet;
}

export function createCrew(deps: CrewDeps): Crew {
  const { metrics } = deps;
  let keepers: readonly Keeper[] = [];

  /** A daemon that was restarted is another process, with nothing to remember. */
  const refresh = (): MissingDaemon[] => {
    const found = findDaemons(deps.rundir);
    keepers = found
      .filter(isFound)
      .map((daemon) => keepers.find((keeper) => keeper.daemon.pid === daemon.pid) ?? createKeeper(daemon, deps));
    return found.filter(isMissing);
  };

  const pmdCpus = () => unionOf(keepers.map((keeper) => keeper.pmdCpus()));

  const record = (name: string, result: PassResult) => {
    metrics.ovsThreads.set({ daemon: name }, result.threads);
    metrics.ovsClipped.set({ daemon: name }, result.clipped);
    metrics.ovsRefused.set({ daemon: name }, result.errors.length);
    metrics.ovsMoves.inc({ daemon: name }, result.moved);
  };

  return {
    apply(wanted) {
      const problems = refresh().map(({ name, message }) => `${name} is not managed: ${message}`);
      const goal = 'only' in wanted ? { only: wanted.only.minus(pmdCpus()) } : wanted;
      if ('only' in goal && !goal.only.intersects(deps.machine())) {
        problems.push(`none of the free CPUs (${goal.only}) is on this machine: the threads stay where they are`);
        return { goal, moved: 0, problems };
      }
      const results = keepers.map((keeper) => ({ name: keeper.daemon.name, ...keeper.apply(goal) }));
      for (const result of results) {
        record(result.name, result);
        problems.push(...complaints(result));
      }
      return { goal, moved: results.reduce((sum, { moved }) => sum + moved, 0), problems };
    },

    restore() {
      refresh();
      const moved = keepers.reduce((sum, keeper) => sum + keeper.restore().moved, 0);
      keepers = [];
      metrics.ovsThreads.reset();
      metrics.ovsClipped.reset();
      metrics.ovsRefused.reset();
      return moved;
    },

    async vacate(cpus, otherwise, signal) {
      const started = performance.now();
      for (;;) {
        refresh();
        const staying = keepers.flatMap((keeper) => leave(keeper, cpus, otherwise));
        const seconds = (performance.now() - started) / 1000;
        if (staying.length === 0) return metrics.vacateSeconds.observe(seconds);
        if (seconds > VACATE_DEADLINE) throw new VacateError(cpus, staying);
        await sleep(VACATE_PAUSE, signal);
      }
    },

    pmdCpus,
  };
}

function complaints({ name, errors, clipped }: PassResult & { readonly name: string }): string[] {
  const said: string[] = [];
  if (errors.length > 0) said.push(`${name}: the kernel refused ${errors.length} threads: ${[...new Set(errors)]}`);
  if (clipped > 0) said.push(`${name}: its cpuset holds ${clipped} threads on fewer CPUs than they may have`);
  return said;
}

/** Moves a daemon's threads off the CPUs; names those that are still there. */
function leave(keeper: Keeper, cpus: CpuSet, otherwise: CpuSet): string[] {
  if (keeper.threadsOn(cpus).length === 0) return [];
  keeper.apply({ avoid: cpus, otherwise });
  const tids = keeper.threadsOn(cpus);
  return tids.length === 0 ? [] : [`${keeper.daemon.name} threads ${tids.join(' ')}`];
}
