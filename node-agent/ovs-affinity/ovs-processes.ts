import type { OvsStatus } from '../../model/agent-status.ts';
import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { few } from '../../model/errors.ts';
import { untilLeft } from '../lifecycle/vacate.ts';
import { DaemonFinder } from '../open-vswitch/daemons.ts';
import { allowedOf } from '../processes/proc.ts';
import { UnreadableError } from '../processes/readable.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { type AffinityProblem, noFreeCpu, notManaged, notReadable, recordPass, refusals, sumOf } from './problems.ts';
import { type CpuTarget, type PassResult, ProcessAffinity, type ProcessAffinityDeps } from './process-affinity.ts';
import { SavedMasks, type SavedMasksDeps } from './saved-masks.ts';

const MAX_NAMED_THREADS = 8;

export interface OvsProcessesDeps extends ProcessAffinityDeps, Pick<SavedMasksDeps, 'masksFile' | 'bootId' | 'log'> {
  readonly rundir: string;
  readonly metrics: AgentMetrics;
}

interface SwitchResult {
  /** Number of threads whose CPUs changed. */
  readonly moved: number;
  /** Number of threads that another process had moved since the last pass. */
  readonly displaced: number;
  readonly problems: readonly AffinityProblem[];
}

const isTroubled = ({ clipped, errors, displaced }: PassResult): boolean =>
  clipped > 0 || errors.length > 0 || displaced > 0;

/**
 * Open vSwitch's daemons and their monitors: which threads they have, and where they run. No method but `vacate` waits
 * or throws: what the kernel refuses or does not show is a problem in the result.
 *
 * Owner: the duty. Age: the processes of the last search that succeeded. End: a process's, when a search no longer finds
 * it; its original masks end later (SavedMasks).
 */
export class OvsProcesses {
  readonly #deps: OvsProcessesDeps;
  readonly #savedMasks: SavedMasks;
  readonly #finder: DaemonFinder;
  #machine: CpuSet;
  #processAffinities: readonly ProcessAffinity[] = [];
  #search: Pick<ReturnType<DaemonFinder['find']>, 'isStarting' | 'missing'> = { isStarting: false, missing: [] };
  /** Why the last search failed; its result is then the one before. */
  #unreadable: AffinityProblem | undefined;
  /** The online CPUs at the last pass: the kernel itself changes masks when CPUs go offline or online. */
  #passedOn: CpuSet;

  constructor(deps: OvsProcessesDeps) {
    this.#deps = deps;
    this.#machine = deps.machine();
    this.#passedOn = this.#machine;
    this.#savedMasks = new SavedMasks({
      ...deps,
      startOf: (pid) => deps.threads.start(pid, pid),
      // The CPUs of the machine's first process, which services without their own setting inherit.
      unconfined: () => allowedOf(deps.affinity, 1) ?? this.#machine,
    });
    this.#finder = new DaemonFinder(deps.rundir, () => this.#savedMasks.processes);
  }

  /**
   * Reads what an earlier agent saved. Called at the start of each run of the duty, with the agent's lock held, before
   * anything else. @param onLate called when original CPUs that could not be read then have been read
   */
  load(signal: AbortSignal, onLate: () => void): void {
    this.#savedMasks.load(signal, onLate);
  }

  /** The online CPUs of this machine, as last read. */
  get machine(): CpuSet {
    return this.#machine;
  }

  /** Reads them; not in a pass, which must be short. @returns whether they changed */
  refreshMachine(): boolean {
    const before = this.#machine;
    this.#machine = this.#deps.machine();
    return !this.#machine.equals(before);
  }

  /** Updates the processes; a daemon that was restarted is another process. */
  #refresh(): void {
    try {
      this.#search = this.#find();
      this.#unreadable = undefined;
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      this.#unreadable = notReadable('Open vSwitch', error.message);
    }
  }

  /** @throws UnreadableError */
  #find() {
    const search = this.#finder.find();
    if (!search.changed) return search;
    const deps = { ...this.#deps, machine: () => this.#machine };
    this.#processAffinities = search.processes.map((process) => {
      const { pid, start, role } = process;
      const existing = this.#processAffinities.find(
        ({ process: other }) => other.pid === pid && other.start === start && other.role === role,
      );
      return existing ?? new ProcessAffinity(process, deps);
    });
    return search;
  }

  /** Lists the threads at the beginning of a pass. @returns the CPUs of polling threads, as `pmdCpus` */
  list(): CpuSet {
    this.#refresh();
    for (const processAffinity of this.#processAffinities) processAffinity.list();
    return this.pmdCpus();
  }

  /** CPUs of the polling threads of the last listing, which the switch pins itself and the agent leaves alone. */
  pmdCpus(): CpuSet {
    return unionOf(this.#processAffinities.map((processAffinity) => processAffinity.pmdCpus()));
  }

  /** One pass, after `list`: moves every thread that is not on its target. The first one saves all CPUs before. */
  apply(target: CpuTarget): SwitchResult {
    const unmanaged = this.unmanaged();
    const unsaved = this.#save();
    if ('only' in target && !target.only.intersects(this.#machine))
      return { moved: 0, displaced: 0, problems: [...unmanaged, ...unsaved, noFreeCpu(target.only)] };
    let results = this.#processAffinities.map((processAffinity) => processAffinity.apply(target, true));
    // A CPU that has gone offline since looks like one that the kernel withholds.
    if (results.some(isTroubled) && this.refreshMachine())
      results = this.#processAffinities.map((processAffinity) => processAffinity.apply(target));
    // A daemon that has ended its start since has other original masks.
    const problems = [...unmanaged, ...this.#save()];
    if (!this.#machine.equals(this.#passedOn)) results = results.map((result) => ({ ...result, displaced: 0 }));
    this.#passedOn = this.#machine;
    for (const daemon of new Set(results.map(({ name }) => name))) {
      const daemonResults = results.filter(({ name }) => name === daemon);
      recordPass(this.#deps.metrics, daemon, daemonResults);
      problems.push(...refusals(daemon, daemonResults));
    }
    const { moved, displaced } = sumOf(results);
    return { moved, displaced, problems };
  }

  /** What a daemon gave its main thread back at the end of its start is on the disk before the thread is moved again. */
  #save(): readonly AffinityProblem[] {
    for (const processAffinity of this.#processAffinities) processAffinity.updateOriginalMasks();
    return this.#savedMasks.save(this.#processAffinities);
  }

  /** Whether the daemons, their saved masks and an eighth of the threads, in turns, are as the last pass left them. */
  isAsLeft(): boolean {
    if (this.#unreadable !== undefined || !this.#finder.isUnchanged() || !this.#savedMasks.isProblemReported)
      return false;
    return this.#processAffinities.every((processAffinity) => processAffinity.isAsLeft());
  }

  /** Gives every thread its original CPUs back, including those that an earlier agent saved. */
  restore(): SwitchResult {
    const problems = this.#recall();
    const results = this.#processAffinities.map((processAffinity) => processAffinity.restore());
    this.leave();
    return restored(results, problems);
  }

  /** After `restore`: forgets what has been restored, and tries the rest again. */
  restoreRemaining(): SwitchResult {
    const problems = this.#recall();
    const waiting = this.#processAffinities.filter(({ originalMasks }) => originalMasks !== undefined);
    const results = waiting.map((processAffinity) => processAffinity.restoreRemaining());
    const complete = waiting.filter(({ originalMasks }) => originalMasks === undefined);
    this.#savedMasks.forget(complete.map(({ process }) => process));
    return restored(results, problems);
  }

  #recall(): readonly AffinityProblem[] {
    this.#refresh();
    return this.#savedMasks.recall(this.#processAffinities);
  }

  /** Whether every thread has its original CPUs back. */
  get isRestored(): boolean {
    return (
      this.#savedMasks.isEmpty && this.#processAffinities.every(({ originalMasks }) => originalMasks === undefined)
    );
  }

  /** Ends the work without moving threads; their original CPUs stay saved. */
  leave(): void {
    const { ovsThreads, ovsClipped, ovsRefused } = this.#deps.metrics;
    for (const metric of [ovsThreads, ovsClipped, ovsRefused]) metric.reset();
  }

  /**
   * Moves all threads off the CPUs. Resolves when no thread may run there. @param otherwise the CPUs for threads that may
   * run on no others @throws VacateError after 2 s
   */
  async vacate(cpus: CpuSet, otherwise: CpuSet, signal?: AbortSignal): Promise<void> {
    const { metrics, nowSeconds } = this.#deps;
    const move = () => {
      this.#refresh();
      this.#save();
      const staying = this.#processAffinities.flatMap((processAffinity) => leave(processAffinity, cpus, otherwise));
      return this.#unreadable === undefined ? staying : [...staying, this.#unreadable.text];
    };
    metrics.vacateSeconds.observe(await untilLeft(cpus, { subject: 'Open vSwitch does', move, nowSeconds }, signal));
  }

  /** Processes and threads as they are now, for display. @param target CPUs of ordinary threads */
  describe(target: CpuSet | undefined): OvsStatus['processes'] {
    this.#refresh();
    const desired = target?.intersect(this.#machine).toString() ?? null;
    return this.#processAffinities.map((processAffinity) => {
      const { name, role, pid } = processAffinity.process;
      return { name, role, pid, threads: processAffinity.describe(desired) };
    });
  }

  /** Whether a process is starting, so that another pass should follow soon. */
  get isStarting(): boolean {
    return this.#search.isStarting;
  }

  /** Daemons that should run here and are not managed. */
  unmanaged(): AffinityProblem[] {
    const missing = this.#search.missing.map(notManaged);
    return this.#unreadable === undefined ? missing : [...missing, this.#unreadable];
  }
}

function restored(results: readonly PassResult[], recallProblems: readonly AffinityProblem[]): SwitchResult {
  const problems = [...recallProblems, ...results.flatMap((result) => refusals(result.name, [result]))];
  const { moved, displaced } = sumOf(results);
  return { moved, displaced, problems };
}

/** Moves a process's threads off the CPUs. @returns the threads that are still there, or may be, as text */
function leave(processAffinity: ProcessAffinity, cpus: CpuSet, otherwise: CpuSet): string[] {
  const { name } = processAffinity.process;
  if (processAffinity.threadsOn(cpus).length > 0) processAffinity.apply({ avoid: cpus, otherwise });
  else if (processAffinity.unreadable === undefined) return [];
  const tids = processAffinity.threadsOn(cpus);
  const { unreadable } = processAffinity;
  if (unreadable !== undefined) return [notReadable(name, unreadable).text];
  return tids.length === 0 ? [] : [`${name} threads ${few(tids.map(String), MAX_NAMED_THREADS, 16).join(' ')}`];
}
