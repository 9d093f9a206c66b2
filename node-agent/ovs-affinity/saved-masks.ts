import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { parseSavedInBoot } from '../files/bounded-file.ts';
import { StateFile } from '../files/state-file.ts';
import { OVS_DAEMONS, type OvsProcess } from '../open-vswitch/daemons.ts';
import { hasEnded } from '../processes/proc.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import type { AffinityProblem } from './problems.ts';
import type { ProcessAffinity } from './process-affinity.ts';
import type { OriginalMasks } from './thread-mover.ts';

const cpus = z.string().transform((text) => CpuSet.parse(text));

/** Maximum bytes. A thread whose mask differs from its main thread's takes about a hundred. */
const MAX_MASKS_BYTES = 4 * 1024 * 1024;

const savedProcess = z
  .object({
    name: z.enum(OVS_DAEMONS),
    role: z.enum(['daemon', 'monitor']),
    pid: z.number().int().positive(),
    start: z.number(),
    main: cpus,
    odd: z.array(z.object({ tid: z.number().int().positive(), start: z.number(), cpus })),
  })
  .transform(({ main, odd, ...process }) => ({ ...process, originalMasks: { main, odd } }));
const schema = z.object({ bootId: z.string(), processes: z.array(savedProcess) });

interface SavedProcess extends OvsProcess {
  readonly originalMasks: OriginalMasks;
}

export interface SavedMasksDeps {
  readonly masksFile: string;
  /** The machine's current boot; masks from an earlier boot are ignored. */
  readonly bootId: string;
  readonly log: AgentLogger;
  readonly startOf: (pid: number) => number | undefined;
  /** CPUs of a process that is not confined. */
  readonly unconfined: () => CpuSet;
}

/**
 * The masks of Open vSwitch's processes from before this agent, or an earlier one, moved a thread.
 *
 * Owner: the agent that met a process first. What an earlier agent saved wins over what this one has seen, also if it
 * can be read only later. If it is lost, an earlier agent may have set the current masks: threads then get the CPUs of
 * the machine's first process, the default of a process without its own setting.
 * Age: of one boot; a process's masks never change, except while it starts. End: when the process has its masks back,
 * or has ended.
 */
export class SavedMasks {
  readonly #deps: SavedMasksDeps;
  readonly #file: StateFile<readonly SavedProcess[]>;
  /** Until the masks have been restored. */
  #lossProblem: AffinityProblem | undefined;
  /** Whether any process has been remembered. A process first seen later started in the meantime, on its own CPUs. */
  #hasMet = false;
  /** Whether saved masks were read after the start of the duty, and no process has them yet. */
  #isLate = false;
  /** The file's problem in the last answer of `save` or `recall`. */
  #reportedProblem: string | undefined;

  constructor(deps: SavedMasksDeps) {
    this.#deps = deps;
    this.#file = new StateFile<readonly SavedProcess[]>({
      path: deps.masksFile,
      maxBytes: MAX_MASKS_BYTES,
      format(saved) {
        const processes = saved.map(({ originalMasks, ...process }) => ({ ...process, ...originalMasks }));
        return JSON.stringify({ bootId: deps.bootId, processes });
      },
      parse: (text) => parseSavedInBoot(text, schema, deps.bootId)?.processes,
      merge: (saved, current) => saved ?? current,
      log: deps.log,
    });
  }

  /** Call it with the agent's lock held. @param onLate called when masks that could not be read now have been read */
  load(signal: AbortSignal, onLate: () => void): void {
    this.#file.load(signal, () => {
      this.#noteLoss();
      this.#isLate = true;
      onLate();
    });
    this.#noteLoss();
  }

  #noteLoss(): void {
    const { loss } = this.#file;
    if (loss === undefined) return;
    const text =
      `${loss}: the original masks are lost. If the feature is turned off, threads get the CPUs of the machine’s ` +
      `first process (${this.#deps.unconfined().brief}); restart Open vSwitch to get the CPUs of its unit`;
    this.#lossProblem = { cause: 'masks-file', text };
  }

  get processes(): readonly SavedProcess[] {
    return this.#file.value ?? [];
  }

  /** Whether no process waits for its masks, and none may turn up in a file that cannot be read yet. */
  get isEmpty(): boolean {
    return this.#file.mode !== 'unread' && this.processes.length === 0;
  }

  /** False when the file's state has changed since: it was written or read at last, or its error is another. */
  get isProblemReported(): boolean {
    return this.#file.problem === this.#reportedProblem;
  }

  /** Saves the masks that are not saved yet. @returns masks that are lost, unknown or not on the disk */
  save(processAffinities: readonly ProcessAffinity[]): readonly AffinityProblem[] {
    const hasNew = processAffinities.some(({ originalMasks }) => originalMasks === undefined);
    this.#adoptSaved(processAffinities);
    const remembered = new Set<OriginalMasks | undefined>(this.processes.map(({ originalMasks }) => originalMasks));
    if (!hasNew && processAffinities.every(({ originalMasks }) => remembered.has(originalMasks)))
      return this.#problems();
    for (const processAffinity of processAffinities)
      if (processAffinity.originalMasks === undefined) processAffinity.adoptMasks();
    const present = processAffinities.flatMap(({ process, originalMasks }) =>
      originalMasks === undefined ? [] : [{ ...process, originalMasks }],
    );
    // A monitor is not found while its daemon is down. Keep its masks for the next daemon.
    const others = this.#alive().filter(({ pid }) => !present.some((process) => process.pid === pid));
    this.#set([...present, ...others]);
    this.#hasMet = true;
    return this.#problems();
  }

  /** Only gives the processes the masks that are saved. @returns masks that are lost, unknown or not on the disk */
  recall(processAffinities: readonly ProcessAffinity[]): readonly AffinityProblem[] {
    this.#adoptSaved(processAffinities);
    return this.#problems();
  }

  /** Those that have their masks back, and those that have ended. All others stay saved. */
  forget(restored: readonly OvsProcess[]): void {
    const remaining = this.#alive().filter((process) => !restored.some((other) => isSame(process, other)));
    this.#set(remaining);
    if (remaining.length === 0) this.#lossProblem = undefined;
  }

  #set(processes: readonly SavedProcess[]): void {
    this.#file.set(processes.length === 0 ? undefined : processes);
  }

  #alive(): readonly SavedProcess[] {
    return this.processes.filter((process) => !hasEnded(process, this.#deps.startOf));
  }

  #assumed(): OriginalMasks | undefined {
    return this.#lossProblem === undefined || this.#hasMet ? undefined : { main: this.#deps.unconfined(), odd: [] };
  }

  /** Saved masks that could be read only now also replace those that this agent has seen. */
  #adoptSaved(processAffinities: readonly ProcessAffinity[]): void {
    for (const processAffinity of processAffinities) {
      const isNew = processAffinity.originalMasks === undefined;
      if (!isNew && !this.#isLate) continue;
      const masks = this.#masksOf(processAffinity, processAffinities) ?? (isNew ? this.#assumed() : undefined);
      if (masks !== undefined) processAffinity.adoptMasks(masks);
    }
    this.#isLate = false;
  }

  #problems(): readonly AffinityProblem[] {
    const { mode, problem } = this.#file;
    this.#reportedProblem = problem;
    const problems = this.#lossProblem === undefined ? [] : [this.#lossProblem];
    if (problem === undefined) return problems;
    const effect =
      mode === 'unread'
        ? 'the threads’ original masks are unknown until their file can be read'
        : 'cannot save the threads’ original masks, so a killed agent would not restore them';
    return [...problems, { cause: 'masks-file', text: `${effect}; check /var/lib/plumbline: ${problem}` }];
  }

  /** A daemon that its monitor restarted inherited the CPUs that the agent gave the monitor. */
  #masksOf({ process }: ProcessAffinity, others: readonly ProcessAffinity[]): OriginalMasks | undefined {
    const saved = this.processes.find((savedProcess) => isSame(savedProcess, process));
    if (saved !== undefined || process.role === 'monitor') return saved?.originalMasks;
    const monitor = others.find((other) => other.process.name === process.name && other.process.role === 'monitor');
    const before = monitor && this.processes.find((savedProcess) => isSame(savedProcess, monitor.process));
    // A monitor with saved masks was moved before its child started. Otherwise both are seen for the first time.
    return before && { main: before.originalMasks.main, odd: [] };
  }
}

function isSame(a: OvsProcess, b: OvsProcess): boolean {
  return a.pid === b.pid && a.start === b.start;
}
