import type { CpuSet } from '../../model/cpu-set.ts';
import type { AffinityProblem } from './problems.ts';
import type { CpuTarget, ThreadState } from './process-affinity.ts';

/** A process of a switch, and its threads, for display. */
export interface SwitchProcess<Name extends string = string> {
  readonly name: Name;
  readonly role: 'daemon' | 'monitor';
  readonly pid: number;
  readonly threads: readonly ThreadState[];
}

export interface SwitchResult {
  /** Number of threads whose CPUs changed. */
  readonly moved: number;
  /** Number of threads that another process had moved since the last pass. */
  readonly displaced: number;
  readonly problems: readonly AffinityProblem[];
}

/** The threads at the beginning of a pass, and the CPUs of those that poll. */
export interface SwitchSnapshot {
  readonly pmdCpus: CpuSet;
}

/**
 * What the duty needs of a virtual switch on this host: which threads it has, and where they run. A second switch than
 * Open vSwitch implements this. No method but `vacate` waits or throws: what the kernel refuses or does not show is a
 * problem in the result.
 */
export interface VirtualSwitch<Snapshot extends SwitchSnapshot = SwitchSnapshot> {
  /**
   * Reads what an earlier agent saved. Called at the start of each run of the duty, with the agent's lock held, before
   * anything else. @param onLate called when original CPUs that could not be read then have been read
   */
  load(signal: AbortSignal, onLate: () => void): void;

  /** Processes and threads as they are now, for display. */
  describe(): readonly SwitchProcess[];
  /** Daemons that should run here and are not managed. */
  unmanaged(): readonly AffinityProblem[];
  /** Whether a process is starting, so that another pass should follow soon. */
  readonly isStarting: boolean;

  /** The online CPUs of this machine, as last read. */
  readonly machine: CpuSet;
  /** Reads them; not in a pass, which must be short. @returns whether they changed */
  refreshMachine(): boolean;

  /** Lists the threads. `apply` uses it within the same pass. */
  snapshot(): Snapshot;
  /** CPUs of the polling threads of the last snapshot, which the switch pins itself and the agent leaves alone. */
  pmdCpus(): CpuSet;

  /** One pass: moves every thread that is not on its target. The first one saves the CPUs before it changes any. */
  apply(target: CpuTarget, snapshot: Snapshot): SwitchResult;
  /**
   * Moves all threads off the CPUs. Resolves when no thread may run there. @param otherwise the CPUs for threads that may
   * run on no others @throws VacateError after 2 s
   */
  vacate(cpus: CpuSet, otherwise: CpuSet, signal?: AbortSignal): Promise<void>;
  /** A cheap probe between passes: whether processes and threads are as the last pass left them. */
  isAsLeft(): boolean;

  /** Gives every thread its original CPUs back, including those that an earlier agent saved. */
  restore(): SwitchResult;
  /** After `restore`: forgets what has been restored, and tries the rest again. */
  restoreRemaining(): SwitchResult;
  /** Whether every thread has its original CPUs back. */
  readonly isRestored: boolean;
  /** Ends the work without moving threads; their original CPUs stay saved. */
  leave(): void;
}
