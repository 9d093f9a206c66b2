import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { few, PlumblineError } from '../../model/errors.ts';
import { sleep } from '../../runtime/time.ts';
import { DaemonFinder, type OvsProcess } from '../open-vswitch/daemons.ts';
import { allowedOf } from '../processes/proc.ts';
import { UnreadableError } from '../processes/readable.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import {
  type AffinityProblem,
  notManaged,
  notReadable,
  nowhereToGo,
  type ProcessResult,
  recordThreads,
  refusals,
  sumOf,
} from './problems.ts';
import {
  type CpuTarget,
  type PassResult,
  ProcessAffinity,
  type ProcessAffinityDeps,
  type ThreadSnapshot,
} from './process-affinity.ts';
import { SavedMasks, type SavedMasksDeps } from './saved-masks.ts';
import type { SwitchProcess, SwitchResult, SwitchSnapshot, VirtualSwitch } from './virtual-switch.ts';

type DaemonSearch = ReturnType<DaemonFinder['find']>;

/** Maximum seconds that a container's start waits for the threads to leave its CPUs. */
const VACATE_DEADLINE_SECONDS = 2;
const VACATE_POLL_SECONDS = 0.02;

const MAX_NAMED_THREADS = 8;

/** Threads stayed on CPUs for longer than a container's start may be delayed. */
class VacateError extends PlumblineError {
  constructor(cpus: CpuSet, staying: readonly string[]) {
    super('vacate', `Open vSwitch does not leave CPUs ${cpus.brief}: ${staying.join(', ')}`);
  }
}

export interface OvsProcessesDeps extends ProcessAffinityDeps, Pick<SavedMasksDeps, 'masksFile' | 'bootId' | 'log'> {
  readonly rundir: string;
  readonly metrics: AgentMetrics;
}

interface OvsSnapshot extends SwitchSnapshot {
  readonly threads: ReadonlyMap<ProcessAffinity, ThreadSnapshot>;
}

const isTroubled = ({ clipped, errors, displaced }: PassResult): boolean =>
  clipped > 0 || errors.length > 0 || displaced > 0;

const isComplete = ({ clipped, errors, unreadable }: PassResult): boolean =>
  clipped === 0 && errors.length === 0 && unreadable === undefined;

/**
 * Open vSwitch's daemons and their monitors. Owner: the duty. Age: the processes of the last search that succeeded. End:
 * a process's, when a search no longer finds it; its original masks end later (SavedMasks).
 */
export class OvsProcesses implements VirtualSwitch<OvsSnapshot> {
  readonly #metrics: AgentMetrics;
  readonly #savedMasks: SavedMasks;
  readonly #finder: DaemonFinder;
  readonly #readMachine: () => CpuSet;
  readonly #affinityDeps: ProcessAffinityDeps;
  #machine: CpuSet;
  #processAffinities: readonly ProcessAffinity[] = [];
  #search: Pick<DaemonSearch, 'isStarting' | 'missing'> = { isStarting: false, missing: [] };
  /** Why the last search failed; its result is then the one before. */
  #unreadable: AffinityProblem | undefined;
  /** The online CPUs at the last pass: the kernel itself changes masks when CPUs go offline or online. */
  #passedOn: CpuSet;

  constructor(deps: OvsProcessesDeps) {
    this.#metrics = deps.metrics;
    this.#readMachine = deps.machine;
    this.#machine = deps.machine();
    this.#passedOn = this.#machine;
    this.#affinityDeps = { ...deps, machine: () => this.#machine };
    this.#savedMasks = new SavedMasks({
      ...deps,
      startOf: (pid) => deps.threads.start(pid, pid),
      // The CPUs of the machine's first process, which services without their own setting inherit.
      unconfined: () => allowedOf(deps.affinity, 1) ?? this.#machine,
    });
    this.#finder = new DaemonFinder(deps.rundir, () => this.#savedMasks.processes);
  }

  load(signal: AbortSignal, onLate: () => void): void {
    this.#savedMasks.load(signal, onLate);
  }

  get machine(): CpuSet {
    return this.#machine;
  }

  refreshMachine(): boolean {
    const before = this.#machine;
    this.#machine = this.#readMachine();
    return !this.#machine.equals(before);
  }

  /** Updates the processes; a daemon that was restarted is another process. */
  #refresh(): void {
    const search = this.#find();
    if (search === undefined) return;
    this.#search = search;
    if (!search.changed) return;
    this.#processAffinities = search.processes.map((process) => {
      const { pid, start, role } = process;
      const existing = this.#processAffinities.find(
        ({ process: other }) => other.pid === pid && other.start === start && other.role === role,
      );
      return existing ?? new ProcessAffinity(process, this.#affinityDeps);
    });
  }

  #find(): DaemonSearch | undefined {
    try {
      const search = this.#finder.find();
      this.#unreadable = undefined;
      return search;
    } catch (error) {
      if (!(error instanceof UnreadableError)) throw error;
      this.#unreadable = notReadable('Open vSwitch', error.message);
      return undefined;
    }
  }

  snapshot(): OvsSnapshot {
    this.#refresh();
    const threads = new Map(
      this.#processAffinities.map((processAffinity) => [processAffinity, processAffinity.snapshot()] as const),
    );
    return { pmdCpus: this.pmdCpus(), threads };
  }

  pmdCpus(): CpuSet {
    return unionOf(this.#processAffinities.map((processAffinity) => processAffinity.pmdCpus()));
  }

  apply(target: CpuTarget, snapshot: OvsSnapshot): SwitchResult {
    const unmanaged = this.unmanaged();
    const unsaved = this.#savedMasks.save(this.#processAffinities);
    if ('only' in target && !target.only.intersects(this.#machine))
      return { moved: 0, displaced: 0, problems: [...unmanaged, ...unsaved, nowhereToGo(target.only)] };
    let results = this.#pass(target, snapshot);
    // A CPU that has gone offline since looks like one that the kernel withholds.
    if (results.some(isTroubled) && this.refreshMachine()) results = this.#pass(target);
    // A daemon that has ended its start has other original masks.
    const problems = [...unmanaged, ...this.#savedMasks.save(this.#processAffinities)];
    const isSameMachine = this.#machine.equals(this.#passedOn);
    this.#passedOn = this.#machine;
    if (!isSameMachine) results = results.map((result) => ({ ...result, displaced: 0 }));
    for (const name of new Set(this.#processAffinities.map(({ process }) => process.name))) {
      const daemonResults = results.filter(({ process }) => process.name === name);
      recordThreads(this.#metrics, name, daemonResults);
      problems.push(...refusals(name, daemonResults));
    }
    const { moved, displaced } = sumOf(results);
    return { moved, displaced, problems };
  }

  #pass(target: CpuTarget, snapshot?: OvsSnapshot): ProcessResult[] {
    return this.#processAffinities.map((processAffinity) => ({
      process: processAffinity.process,
      ...processAffinity.apply(target, snapshot?.threads.get(processAffinity)),
    }));
  }

  /** Whether the daemons, their saved masks and a sixth of the threads, in turns, are as the last pass left them. */
  isAsLeft(): boolean {
    if (this.#unreadable !== undefined || !this.#finder.isUnchanged() || !this.#savedMasks.isProblemReported)
      return false;
    return this.#processAffinities.every((processAffinity) => processAffinity.isAsLeft());
  }

  restore(): SwitchResult {
    this.#refresh();
    const problems = this.#savedMasks.recall(this.#processAffinities);
    const results = this.#processAffinities.map((processAffinity) => ({
      process: processAffinity.process,
      ...processAffinity.restore(),
    }));
    this.#forgetMetrics();
    return this.#restored(results, problems);
  }

  restoreRemaining(): SwitchResult {
    this.#refresh();
    const problems = this.#savedMasks.recall(this.#processAffinities);
    const waiting = this.#processAffinities.filter(({ originalMasks }) => originalMasks !== undefined);
    const results = waiting.map((one) => ({ process: one.process, ...one.restoreRemaining() }));
    const restored = waiting.filter((_, i) => results[i] !== undefined && isComplete(results[i]));
    for (const processAffinity of restored) processAffinity.forget();
    this.#savedMasks.forget(restored.map(({ process }) => process));
    return this.#restored(results, problems);
  }

  #restored(results: readonly ProcessResult[], recallProblems: readonly AffinityProblem[]): SwitchResult {
    const problems = [...recallProblems, ...results.flatMap((result) => refusals(result.process.name, [result]))];
    const { moved, displaced } = sumOf(results);
    return { moved, displaced, problems };
  }

  get isRestored(): boolean {
    return (
      this.#savedMasks.isEmpty &&
      this.#processAffinities.every((processAffinity) => processAffinity.originalMasks === undefined)
    );
  }

  leave(): void {
    this.#forgetMetrics();
  }

  #forgetMetrics(): void {
    const { ovsThreads, ovsClipped, ovsRefused } = this.#metrics;
    for (const metric of [ovsThreads, ovsClipped, ovsRefused]) metric.reset();
  }

  async vacate(cpus: CpuSet, otherwise: CpuSet, signal?: AbortSignal): Promise<void> {
    const started = performance.now();
    for (;;) {
      this.#refresh();
      this.#savedMasks.save(this.#processAffinities);
      const staying = this.#processAffinities.flatMap((processAffinity) => leave(processAffinity, cpus, otherwise));
      if (this.#unreadable !== undefined) staying.push(this.#unreadable.text);
      const seconds = (performance.now() - started) / 1000;
      if (staying.length === 0) return this.#metrics.vacateSeconds.observe(seconds);
      if (seconds > VACATE_DEADLINE_SECONDS) throw new VacateError(cpus, staying);
      await sleep(VACATE_POLL_SECONDS, signal);
    }
  }

  describe(): SwitchProcess<OvsProcess['name']>[] {
    this.#refresh();
    return this.#processAffinities.map((processAffinity) => ({
      ...processAffinity.process,
      threads: processAffinity.describe(),
    }));
  }

  get isStarting(): boolean {
    return this.#search.isStarting;
  }

  unmanaged(): AffinityProblem[] {
    const missing = this.#search.missing.map(notManaged);
    return this.#unreadable === undefined ? missing : [...missing, this.#unreadable];
  }
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
