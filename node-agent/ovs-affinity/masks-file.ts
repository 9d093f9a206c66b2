import { rmSync } from 'node:fs';
import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { parseSaved, putAside, readBounded, SavedFormatError, saveFile } from '../files/bounded-file.ts';
import { OVS_DAEMONS, type OvsProcess } from '../open-vswitch/daemons.ts';

/** Maximum bytes. A thread whose mask differs from its main thread's takes about a hundred. */
const MOST_MASKS = 4 * 1024 * 1024;

/** Error codes of a missing file: no masks were lost. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

/** The masks file cannot be read, parsed or written. */
export class MasksFileError extends PlumblineError {
  constructor(file: string, why: string, options?: ErrorOptions) {
    super('masks-file', `${file}: ${why}`, options);
  }
}

/** A process and the original masks of its threads. */
export interface SavedProcess extends OvsProcess {
  readonly originalMasks: OriginalMasks;
}

/** Stores the threads' original masks on disk, so that the next agent can restore what a killed one changed. */
export type MasksFile = ReturnType<typeof createMasksFile>;

const cpus = z.string().transform((text) => CpuSet.parse(text));
const schema = z.object({
  bootId: z.string(),
  processes: z.array(
    z.object({
      name: z.enum(OVS_DAEMONS),
      role: z.enum(['daemon', 'monitor']),
      pid: z.number().int().positive(),
      start: z.number(),
      main: cpus,
      odd: z.array(z.object({ tid: z.number().int().positive(), start: z.number(), cpus })),
    }),
  ),
});

/** @param bootId the machine's current boot; masks from an earlier boot are ignored */
export function createMasksFile(path: string, bootId: string) {
  return {
    path,
    /** Reads the masks saved since the machine's start; empty without a file. @throws MasksFileError */
    load(): SavedProcess[] {
      let text: string;
      try {
        text = readBounded(path, MOST_MASKS);
      } catch (error) {
        if (ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) return [];
        throw new MasksFileError(path, `cannot be read: ${(error as Error).message}`, { cause: error });
      }
      const saved = parse(path, text);
      if (saved.bootId !== bootId) return [];
      return saved.processes.map(({ main, odd, ...process }) => ({ ...process, originalMasks: { main, odd } }));
    },

    /**
     * Moves an unusable file out of the way and keeps it for inspection. @returns its new path, or undefined if that
     * failed
     */
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

/** The original mask of a thread whose mask differed from its main thread's. */
interface OddThread {
  readonly tid: number;
  /** Clock ticks since the machine's start. */
  readonly start: number;
  readonly cpus: CpuSet;
}

/**
 * The masks of a process's threads before the agent moved any. A thread that is not listed had the main thread's mask,
 * or started later and would have inherited it.
 */
export interface OriginalMasks {
  readonly main: CpuSet;
  readonly odd: readonly OddThread[];
}

/** Returns the original mask of a thread. */
export function originalMaskOf(
  { main, odd }: OriginalMasks,
  tid: number,
  startOf: (tid: number) => number | undefined,
): CpuSet {
  const own = odd.find((thread) => thread.tid === tid);
  return own !== undefined && startOf(tid) === own.start ? own.cpus : main;
}
