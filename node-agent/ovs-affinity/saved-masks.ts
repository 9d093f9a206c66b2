import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { parseSaved } from '../files/bounded-file.ts';
import { StateFile } from '../files/state-file.ts';
import { OVS_DAEMONS, type OvsProcess } from '../open-vswitch/daemons.ts';
import { hasEnded } from '../processes/proc.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import type { AffinityProblem } from './problems.ts';
import type { ProcessAffinity } from './process-affinity.ts';
import type { OriginalMasks } from './thread-mover.ts';

const cpus = z.string().transform((text) => CpuSet.parse(text));

const oddThread = z.object({ tid: z.number().int().positive(), start: z.number(), cpus });

/** Maximum bytes. A thread whose mask differs from its main thread's takes about a hundred. */
const MAX_MASKS_BYTES = 4 * 1024 * 1024;

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
  #onLate: (() => void) | undefined;

  constructor(deps: SavedMasksDeps) {
    this.#deps = deps;
    this.#file = new StateFile<readonly SavedProcess[]>({
      path: deps.masksFile,
      maxBytes: MAX_MASKS_BYTES,
      format: (processes) => formatted(deps.bootId, processes),
      parse: (text) => parsed(deps.bootId, text),
      merge: (saved, current) => saved ?? current,
      onLoaded: () => this.#loaded(),
      log: deps.log,
    });
  }

  /** Call it with the agent's lock held. @param onLate called when masks that could not be read now have been read */
  load(signal: AbortSignal, onLate: () => void): void {
    this.#onLate = undefined;
    this.#file.load(signal);
    this.#onLate = onLate;
  }

  #loaded(): void {
    const { loss } = this.#file;
    if (loss !== undefined) {
      const text =
        `${loss}: the original masks are lost. If the feature is turned off, threads get the CPUs of the machine’s ` +
        `first process (${this.#deps.unconfined().brief}); restart Open vSwitch to get the CPUs of its unit`;
      this.#lossProblem = { cause: 'masks-file', text };
    }
    if (this.#onLate === undefined) return;
    this.#isLate = true;
    this.#onLate();
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
    this.#adoptLate(processAffinities);
    const before = this.processes;
    const isRemembered = (masks: OriginalMasks | undefined) =>
      masks !== undefined && before.some(({ originalMasks }) => originalMasks === masks);
    if (processAffinities.every(({ originalMasks }) => isRemembered(originalMasks))) return this.#problems();
    for (const processAffinity of processAffinities) {
      if (processAffinity.originalMasks === undefined)
        processAffinity.adoptMasks(savedMasksOf(processAffinity.process, processAffinities, before) ?? this.#assumed());
    }
    const remembered = processAffinities.flatMap(({ process, originalMasks }) =>
      originalMasks === undefined ? [] : [{ ...process, originalMasks }],
    );
    // A monitor is not found while its daemon is down. Keep its masks for the next daemon.
    const others = this.#alive().filter(({ pid }) => !remembered.some((process) => process.pid === pid));
    this.#set([...remembered, ...others]);
    this.#hasMet = true;
    return this.#problems();
  }

  /** Only gives the processes the masks that are saved. @returns masks that are lost, unknown or not on the disk */
  recall(processAffinities: readonly ProcessAffinity[]): readonly AffinityProblem[] {
    this.#adoptLate(processAffinities);
    for (const processAffinity of processAffinities) {
      if (processAffinity.originalMasks !== undefined) continue;
      const masks = savedMasksOf(processAffinity.process, processAffinities, this.processes) ?? this.#assumed();
      if (masks !== undefined) processAffinity.adoptMasks(masks);
    }
    return this.#problems();
  }

  /** Those that have their masks back, and those that have ended. All others stay saved. */
  forget(restored: readonly OvsProcess[]): void {
    const isRestored = ({ pid, start }: SavedProcess) =>
      restored.some((process) => process.pid === pid && process.start === start);
    const remaining = this.#alive().filter((process) => !isRestored(process));
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

  #adoptLate(processAffinities: readonly ProcessAffinity[]): void {
    if (!this.#isLate) return;
    this.#isLate = false;
    for (const processAffinity of processAffinities) {
      const masks = savedMasksOf(processAffinity.process, processAffinities, this.processes);
      if (masks !== undefined) processAffinity.adoptMasks(masks);
    }
  }

  #problems(): readonly AffinityProblem[] {
    const { mode, problem } = this.#file;
    this.#reportedProblem = problem;
    const problems = this.#lossProblem === undefined ? [] : [this.#lossProblem];
    if (problem === undefined) return problems;
    const text =
      mode === 'unread'
        ? `the threads’ original masks are unknown until their file can be read; check /var/lib/plumbline: ${problem}`
        : `cannot save the threads’ original masks, so a killed agent would not restore them; check /var/lib/plumbline: ${problem}`;
    return [...problems, { cause: 'masks-file', text }];
  }
}

/** A daemon that its monitor restarted inherited the CPUs that the agent gave the monitor. */
function savedMasksOf(
  process: OvsProcess,
  processAffinities: readonly ProcessAffinity[],
  saved: readonly SavedProcess[],
): OriginalMasks | undefined {
  const savedProcess = saved.find(({ pid, start }) => pid === process.pid && start === process.start);
  if (savedProcess !== undefined || process.role === 'monitor') return savedProcess?.originalMasks;
  const monitor = processAffinities.find(
    (processAffinity) => processAffinity.process.name === process.name && processAffinity.process.role === 'monitor',
  );
  if (monitor === undefined) return undefined;
  const before = saved.find(({ pid, start }) => pid === monitor.process.pid && start === monitor.process.start);
  // A monitor with saved masks was moved before its child started. Otherwise both are seen for the first time.
  return before === undefined ? undefined : { main: before.originalMasks.main, odd: [] };
}

function formatted(bootId: string, saved: readonly SavedProcess[]): string {
  const processes = saved.map(({ name, role, pid, start, originalMasks: { main, odd } }) => ({
    ...{ name, role, pid, start, main: main.toString() },
    odd: odd.map((thread) => ({ ...thread, cpus: thread.cpus.toString() })),
  }));
  return JSON.stringify({ bootId, processes });
}

function parsed(bootId: string, text: string): readonly SavedProcess[] | undefined {
  const saved = parseSaved(text, schema);
  if (saved.bootId !== bootId) return undefined;
  return saved.processes.map(({ main, odd, ...process }) => ({ ...process, originalMasks: { main, odd } }));
}
