import { rmSync } from 'node:fs';
import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { parseSaved, putAside, readBounded, SavedFormatError, saveFile } from '../files/bounded-file.ts';
import { OVS_DAEMONS, type OvsProcess } from '../open-vswitch/daemons.ts';
import type { AffinityProblem } from './problems.ts';
import type { ProcessAffinity } from './process-affinity.ts';

export interface SavedMasksDeps {
  readonly file: MasksFile;
  readonly startOf: (pid: number) => number | undefined;
  /** CPUs of a process that is not confined. */
  readonly unconfined: () => CpuSet;
}

/**
 * In memory and on disk. If they are lost, an earlier agent may have set the current masks: threads then get the CPUs
 * of the machine's first process, the default of a process without its own setting.
 */
export function createSavedMasks({ file, startOf, unconfined }: SavedMasksDeps) {
  /** Loaded once, on first use; afterwards the masks in memory are newer. */
  let saved: readonly SavedProcess[] | undefined;
  /** Set if the saved masks are lost, until the masks have been restored. */
  let lost: AffinityProblem | undefined;
  let unsaved: AffinityProblem | undefined;
  const failed = (text: string): AffinityProblem => ({ cause: 'masks-file', text });
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
    /** Saves the masks that are not saved yet. @returns masks that are lost, and the reason if saving failed */
    remember(processAffinities: readonly ProcessAffinity[]): readonly AffinityProblem[] {
      const before = load();
      const isSaved = (masks: OriginalMasks | undefined) =>
        masks !== undefined && before.some(({ originalMasks }) => originalMasks === masks);
      if (processAffinities.every(({ originalMasks }) => isSaved(originalMasks))) return problems();
      for (const processAffinity of processAffinities) {
        if (processAffinity.originalMasks === undefined)
          processAffinity.remember(savedMasksOf(processAffinity.process, processAffinities, before) ?? assumed());
      }
      const remembered = processAffinities.flatMap(({ process, originalMasks }) =>
        originalMasks === undefined ? [] : [{ ...process, originalMasks }],
      );
      // A monitor is not found while its daemon is down. Keep its masks for the next daemon.
      const others = before.filter(
        ({ pid, start }) => !remembered.some((one) => one.pid === pid) && startOf(pid) === start,
      );
      save([...remembered, ...others]);
      hasMet = true;
      return problems();
    },
    /** Only loads the masks that an earlier agent saved. @returns masks that are lost */
    recall(processAffinities: readonly ProcessAffinity[]): readonly AffinityProblem[] {
      const before = load();
      for (const processAffinity of processAffinities) {
        const masks = savedMasksOf(processAffinity.process, processAffinities, before) ?? assumed();
        if (processAffinity.originalMasks === undefined && masks !== undefined) processAffinity.remember(masks);
      }
      return problems();
    },
    processes: load,
    clear() {
      if (load().length > 0 || problems().length > 0) save([]);
      lost = undefined;
    },
  };
}

/** A daemon that its monitor restarted inherited the CPUs that the agent gave the monitor. */
function savedMasksOf(
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

/** Maximum bytes. A thread whose mask differs from its main thread's takes about a hundred. */
const MAX_MASKS_BYTES = 4 * 1024 * 1024;

/** Error codes of a missing file: no masks were lost. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

export class MasksFileError extends PlumblineError {
  constructor(file: string, why: string, options?: ErrorOptions) {
    super('masks-file', `${file}: ${why}`, options);
  }
}

export interface SavedProcess extends OvsProcess {
  readonly originalMasks: OriginalMasks;
}

/** Stores the threads' original masks on disk, so that the next agent can restore what a killed one changed. */
export type MasksFile = ReturnType<typeof createMasksFile>;

const cpus = z.string().transform((text) => CpuSet.parse(text));
/** A thread whose mask differed from its main thread's; `start` in clock ticks since the machine's start. */
const oddThread = z.object({ tid: z.number().int().positive(), start: z.number(), cpus });
const schema = z.object({
  bootId: z.string(),
  processes: z.array(
    z.object({
      name: z.enum(OVS_DAEMONS),
      role: z.enum(['daemon', 'monitor']),
      pid: z.number().int().positive(),
      start: z.number(),
      main: cpus,
      odd: z.array(oddThread),
    }),
  ),
});

/** @param bootId the machine's current boot; masks from an earlier boot are ignored */
export function createMasksFile(path: string, bootId: string) {
  return {
    /** Reads the masks saved since the machine's start; empty without a file. @throws MasksFileError */
    load(): SavedProcess[] {
      let text: string;
      try {
        text = readBounded(path, MAX_MASKS_BYTES);
      } catch (error) {
        if (ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) return [];
        throw new MasksFileError(path, `cannot be read: ${(error as Error).message}`, { cause: error });
      }
      const saved = parse(path, text);
      if (saved.bootId !== bootId) return [];
      return saved.processes.map(({ main, odd, ...process }) => ({ ...process, originalMasks: { main, odd } }));
    },

    putAside: (): string | undefined => putAside(path),

    /** Call it before changing the first mask. An empty list removes the file. @throws MasksFileError */
    save(processes: readonly SavedProcess[]) {
      try {
        if (processes.length === 0) return rmSync(path, { force: true });
        const list = processes.map(({ name, role, pid, start, originalMasks: { main, odd } }) => ({
          ...{ name, role, pid, start, main: main.toString() },
          odd: odd.map((thread) => ({ ...thread, cpus: thread.cpus.toString() })),
        }));
        saveFile(path, JSON.stringify({ bootId, processes: list }));
      } catch (error) {
        const why = `cannot save the threads’ original masks, so a killed agent would not restore them; check --state-dir: ${(error as Error).message}`;
        throw new MasksFileError(path, why, { cause: error });
      }
    },
  };
}

function parse(path: string, text: string): z.infer<typeof schema> {
  try {
    return parseSaved(text, schema);
  } catch (error) {
    const why = error instanceof SavedFormatError ? ` (${error.message})` : '';
    throw new MasksFileError(path, `cannot read the saved masks${why}; the original masks are lost`, { cause: error });
  }
}

/** Before the agent moved any. A thread that is not listed had the main thread's mask, or would have inherited it. */
export interface OriginalMasks {
  readonly main: CpuSet;
  readonly odd: readonly Readonly<z.infer<typeof oddThread>>[];
}

export function originalMaskOf(
  { main, odd }: OriginalMasks,
  tid: number,
  startOf: (tid: number) => number | undefined,
): CpuSet {
  const own = odd.find((thread) => thread.tid === tid);
  return own !== undefined && startOf(tid) === own.start ? own.cpus : main;
}
