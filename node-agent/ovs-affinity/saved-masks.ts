import type { CpuSet } from '../../model/cpu-set.ts';
import type { OvsProcess } from '../open-vswitch/daemons.ts';
import type { MasksFile, OriginalMasks, SavedProcess } from './masks-file.ts';
import type { Problem } from './problems.ts';
import type { ProcessAffinity } from './process-affinity.ts';

export interface SavedMasksDeps {
  readonly file: MasksFile;
  /** When the process with that id started; undefined if there is none. */
  readonly startOf: (pid: number) => number | undefined;
  /** CPUs of a process that is not confined. */
  readonly unconfined: () => CpuSet;
}

/**
 * The original masks of each process's threads, in memory and on disk. If the saved masks are lost, an earlier agent
 * may have set the current ones. The threads then get the default of a process without its own setting: the CPUs of the
 * machine's first process.
 */
export function createSavedMasks({ file, startOf, unconfined }: SavedMasksDeps) {
  /** Loaded once, on first use; afterwards the masks in memory are newer. */
  let saved: readonly SavedProcess[] | undefined;
  /** Set if the saved masks are lost, until the masks have been restored. */
  let lost: Problem | undefined;
  let unsaved: Problem | undefined;
  const failed = (text: string): Problem => ({ cause: 'masks-file', text });
  const problems = () => [lost, unsaved].filter((problem) => problem !== undefined);

  const load = (): readonly SavedProcess[] => {
    if (saved !== undefined) return saved;
    try {
      saved = file.load();
    } catch (error) {
      const cpus = unconfined();
      const aside = file.putAside();
      lost = failed(
        `${(error as Error).message}${aside === undefined ? '' : ` (kept as ${aside})`}: if the feature is turned off, threads get ` +
          `the CPUs of the machine’s first process (${cpus.brief}); restart Open vSwitch to get the CPUs of its unit`,
      );
      saved = [];
    }
    return saved;
  };

  const save = (processes: readonly SavedProcess[]) => {
    saved = processes;
    try {
      file.save(processes);
      unsaved = undefined;
    } catch (error) {
      unsaved = failed((error as Error).message);
    }
  };

  /** Whether any process has been remembered. A process first seen later started in the meantime, on its own CPUs. */
  let hasMet = false;
  const assumed = (): OriginalMasks | undefined =>
    lost === undefined || hasMet ? undefined : { main: unconfined(), odd: [] };

  return {
    /** Saves the masks of processes without saved ones. @returns masks that are lost, and the reason if saving failed */
    remember(processAffinities: readonly ProcessAffinity[]): readonly Problem[] {
      if (processAffinities.every(({ originalMasks }) => originalMasks !== undefined)) return problems();
      const before = load();
      for (const processAffinity of processAffinities) {
        if (processAffinity.originalMasks === undefined)
          processAffinity.remember(knownOf(processAffinity.process, processAffinities, before) ?? assumed());
      }
      const known = processAffinities.flatMap(({ process, originalMasks }) =>
        originalMasks === undefined ? [] : [{ ...process, originalMasks }],
      );
      // A monitor is not found while its daemon is down. Keep its masks for the next daemon.
      const others = before.filter(({ pid, start }) => !known.some((one) => one.pid === pid) && startOf(pid) === start);
      save([...known, ...others]);
      hasMet = true;
      return problems();
    },
    /** Only loads the masks that an earlier agent saved. @returns masks that are lost */
    recall(processAffinities: readonly ProcessAffinity[]): readonly Problem[] {
      const before = load();
      for (const processAffinity of processAffinities) {
        const known = knownOf(processAffinity.process, processAffinities, before) ?? assumed();
        if (processAffinity.originalMasks === undefined && known !== undefined) processAffinity.remember(known);
      }
      return problems();
    },
    /** The processes with saved masks. */
    processes: load,
    clear() {
      if (load().length > 0 || problems().length > 0) save([]);
      lost = undefined;
    },
  };
}

/**
 * Returns the known original masks of a process. A daemon that its monitor restarted inherited the CPUs that the agent
 * had moved the monitor to, so its original mask is the monitor's.
 */
function knownOf(
  process: OvsProcess,
  processAffinities: readonly ProcessAffinity[],
  saved: readonly SavedProcess[],
): OriginalMasks | undefined {
  const own = saved.find(({ pid, start }) => pid === process.pid && start === process.start);
  if (own !== undefined || process.role === 'monitor') return own?.originalMasks;
  const monitor = processAffinities.find(
    (processAffinity) => processAffinity.process.name === process.name && processAffinity.process.role === 'monitor',
  );
  if (monitor === undefined) return undefined;
  const before = saved.find(({ pid, start }) => pid === monitor.process.pid && start === monitor.process.start);
  // A monitor with saved masks was moved before its child started. Otherwise both are seen for the first time.
  return before === undefined ? undefined : { main: before.originalMasks.main, odd: [] };
}
