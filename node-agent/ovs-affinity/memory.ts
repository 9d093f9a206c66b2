import type { OvsProcess } from './daemons.ts';
import type { Keeper } from './keeper.ts';
import type { MasksFile, SavedProcess } from './masks-file.ts';
import type { Originals } from './originals.ts';
import type { Problem } from './problems.ts';

/** What each process's threads are to be given back, in the keepers and on disk. */
export interface Memory {
  /** Lets keepers that remember nothing yet do so. @returns why it could not be saved, if it could not */
  remember(keepers: readonly Keeper[]): Problem | undefined;
  /** Gives keepers what an agent before this one saved, and no more. */
  recall(keepers: readonly Keeper[]): void;
  clear(): void;
}

/** @param startOf when the process with that id was started; undefined if there is none */
export function createMemory(file: MasksFile, startOf: (pid: number) => number | undefined): Memory {
  /** Read once, when it is first needed; from then on what is in memory is newer. */
  let saved: readonly SavedProcess[] | undefined;
  let problem: Problem | undefined;
  const failed = (error: unknown): Problem => ({ cause: 'masks-file', text: (error as Error).message });

  const load = (): readonly SavedProcess[] => {
    if (saved !== undefined) return saved;
    try {
      saved = file.load();
    } catch (error) {
      problem = failed(error);
      saved = [];
    }
    return saved;
  };

  const save = (processes: readonly SavedProcess[]) => {
    saved = processes;
    try {
      file.save(processes);
      problem = undefined;
    } catch (error) {
      problem = failed(error);
    }
  };

  return {
    remember(keepers) {
      if (keepers.every(({ originals }) => originals !== undefined)) return problem;
      const before = load();
      for (const keeper of keepers) {
        if (keeper.originals === undefined) keeper.remember(knownOf(keeper.process, keepers, before));
      }
      const known = keepers.flatMap(({ process, originals }) =>
        originals === undefined ? [] : [{ ...process, originals }],
      );
      // A monitor is not found while its daemon is down, and what it had is what the next daemon is to have.
      const others = before.filter(({ pid, start }) => !known.some((one) => one.pid === pid) && startOf(pid) === start);
      save([...known, ...others]);
      return problem;
    },
    recall(keepers) {
      const before = load();
      for (const keeper of keepers) {
        const known = knownOf(keeper.process, keepers, before);
        if (keeper.originals === undefined && known !== undefined) keeper.remember(known);
      }
    },
    clear() {
      if (load().length > 0 || problem !== undefined) save([]);
    },
  };
}

/**
 * What is known of a process from before. A daemon that its monitor has started again was born on the CPUs that the
 * monitor had been moved to: its own are the monitor's from before that.
 */
function knownOf(
  process: OvsProcess,
  keepers: readonly Keeper[],
  saved: readonly SavedProcess[],
): Originals | undefined {
  const own = saved.find(({ pid, start }) => pid === process.pid && start === process.start);
  if (own !== undefined || process.role === 'monitor') return own?.originals;
  const monitor = keepers.find((keeper) => keeper.process.name === process.name && keeper.process.role === 'monitor');
  if (monitor === undefined) return undefined;
  const before = saved.find(({ pid, start }) => pid === monitor.process.pid && start === monitor.process.start);
  // Seen before us, it was moved before its child was born; else the two are seen for the first time together.
  return before === undefined ? undefined : { main: before.originals.main, odd: [] };
}
