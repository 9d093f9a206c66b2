import { type CpuSet, unionOf } from '../../model/cpu-set.ts';
import { few, PlumblineError } from '../../model/errors.ts';
import { sleep } from '../../runtime/time.ts';
import { DaemonFinder, type MissingDaemon, type OvsProcess } from '../open-vswitch/daemons.ts';
import { allowedOf } from '../processes/proc.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import {
  type AffinityProblem,
  notManaged,
  nowhereToGo,
  type ProcessResult,
  recordThreads,
  refusals,
  sumOf,
} from './problems.ts';
import {
  type CpuTarget,
  createProcessAffinity,
  type PassResult,
  type ProcessAffinity,
  type ProcessAffinityDeps,
  type ThreadSnapshot,
  type ThreadState,
} from './process-affinity.ts';
import { createSavedMasks, type MasksFile } from './saved-masks.ts';

/** Maximum seconds that a container's start waits for the threads to leave its CPUs. */
const VACATE_DEADLINE_SECONDS = 2;
const VACATE_POLL_SECONDS = 0.02;

const MAX_NAMED_THREADS = 8;

/** Threads stayed on CPUs for longer than a container's start may be delayed. */
export class VacateError extends PlumblineError {
  constructor(cpus: CpuSet, staying: readonly string[]) {
    super('vacate', `Open vSwitch does not leave CPUs ${cpus.brief}: ${staying.join(', ')}`);
  }
}

export interface OvsProcessesDeps extends ProcessAffinityDeps {
  readonly rundir: string;
  readonly masksFile: MasksFile;
  readonly metrics: AgentMetrics;
}

interface OvsSnapshot {
  readonly pmdCpus: CpuSet;
  readonly threads: ReadonlyMap<ProcessAffinity, ThreadSnapshot>;
}

export type OvsProcesses = ReturnType<typeof createOvsProcesses>;

const isTroubled = ({ clipped, errors, displaced }: PassResult): boolean =>
  clipped > 0 || errors.length > 0 || displaced > 0;

export function createOvsProcesses(deps: OvsProcessesDeps) {
  const { metrics } = deps;
  let machine = deps.machine();
  const savedMasks = createSavedMasks({
    file: deps.masksFile,
    startOf: (pid) => deps.threads.start(pid, pid),
    // The CPUs of the machine's first process, which services without their own setting inherit.
    unconfined: () => allowedOf(deps.affinity, 1) ?? machine,
  });
  const finder = new DaemonFinder(deps.rundir, savedMasks.processes);
  const processAffinityDeps: ProcessAffinityDeps = { ...deps, machine: () => machine };
  let processAffinities: readonly ProcessAffinity[] = [];
  let isStarting = false;
  let missing: readonly MissingDaemon[] = [];
  /** The online CPUs at the last pass: the kernel itself changes masks when CPUs go offline or online. */
  let passedOn = machine;

  const seeMachine = (): boolean => {
    const before = machine;
    machine = deps.machine();
    return !machine.equals(before);
  };

  /** Updates the processes; a daemon that was restarted is another process. */
  const refresh = (): boolean => {
    const search = finder.find();
    missing = search.missing;
    isStarting = search.isStarting;
    if (!search.changed) return false;
    processAffinities = search.processes.map((process) => {
      const { pid, start, role } = process;
      const existing = processAffinities.find(
        ({ process: other }) => other.pid === pid && other.start === start && other.role === role,
      );
      return existing ?? createProcessAffinity(process, processAffinityDeps);
    });
    return true;
  };

  const pass = (target: CpuTarget, snapshot?: OvsSnapshot): ProcessResult[] =>
    processAffinities.map((one) => ({ process: one.process, ...one.apply(target, snapshot?.threads.get(one)) }));

  const forgetThreads = () => {
    for (const metric of [metrics.ovsThreads, metrics.ovsClipped, metrics.ovsRefused]) metric.reset();
  };

  const pmdCpus = () => unionOf(processAffinities.map((one) => one.pmdCpus()));

  return {
    /** Reads which CPUs are online; not in a pass, which must be short. @returns whether they changed */
    seeMachine,
    machine: (): CpuSet => machine,
    snapshot(): OvsSnapshot {
      refresh();
      const threads = new Map(processAffinities.map((one) => [one, one.snapshot()] as const));
      return { pmdCpus: pmdCpus(), threads };
    },
    /** CPUs that the poll mode driver threads of the last listing may run on now. */
    pmdCpus,

    /**
     * One pass over every thread. The first one saves the masks before it changes any. Problems are unmanaged daemons,
     * lost masks, and threads that the kernel held back or refused to move.
     */
    apply(target: CpuTarget, snapshot: OvsSnapshot) {
      const problems = [...missing.map(notManaged), ...savedMasks.remember(processAffinities)];
      if ('only' in target && !target.only.intersects(machine))
        return { moved: 0, displaced: 0, problems: [...problems, nowhereToGo(target.only)] };
      let results = pass(target, snapshot);
      // A CPU that has gone offline since looks like one that the kernel withholds.
      if (results.some(isTroubled) && seeMachine()) results = pass(target);
      // A daemon that has ended its start has other original masks.
      savedMasks.remember(processAffinities);
      const isSameMachine = machine.equals(passedOn);
      passedOn = machine;
      if (!isSameMachine) results = results.map((result) => ({ ...result, displaced: 0 }));
      const names = new Set(processAffinities.map(({ process }) => process.name));
      for (const name of names) {
        const own = results.filter(({ process }) => process.name === name);
        recordThreads(metrics, name, own);
        problems.push(...refusals(name, own));
      }
      const { moved, displaced } = sumOf(results);
      return { moved, displaced, problems };
    },

    /** Whether the daemons and a quarter of the threads, in turns, are as the last pass left them. */
    isAsLeft: () => finder.isAsFound() && processAffinities.every((processAffinity) => processAffinity.isAsLeft()),

    /** Restores every thread's original mask, including those that a killed agent saved. */
    restore() {
      refresh();
      const lost = savedMasks.recall(processAffinities);
      const results = processAffinities.map((one) => ({ process: one.process, ...one.restore() }));
      forgetThreads();
      const problems = [...lost, ...results.flatMap((result) => refusals(result.process.name, [result]))];
      const { moved, displaced } = sumOf(results);
      return { moved, displaced, problems };
    },

    forget() {
      for (const processAffinity of processAffinities) processAffinity.forget();
      savedMasks.clear();
    },

    /** Ends the work without moving threads; their original masks stay saved. */
    leave: forgetThreads,

    /** @param otherwise the CPUs for threads that may run on no others @throws VacateError after 2 s */
    async vacate(cpus: CpuSet, otherwise: CpuSet, signal?: AbortSignal) {
      const started = performance.now();
      for (;;) {
        refresh();
        savedMasks.remember(processAffinities);
        const staying = processAffinities.flatMap((processAffinity) => leave(processAffinity, cpus, otherwise));
        const seconds = (performance.now() - started) / 1000;
        if (staying.length === 0) return metrics.vacateSeconds.observe(seconds);
        if (seconds > VACATE_DEADLINE_SECONDS) throw new VacateError(cpus, staying);
        await sleep(VACATE_POLL_SECONDS, signal);
      }
    },

    describe(): (OvsProcess & { readonly threads: readonly ThreadState[] })[] {
      refresh();
      return processAffinities.map((one) => ({ ...one.process, threads: one.describe() }));
    },

    /** Whether a daemon is starting, so that its monitor may still be unknown. */
    isStarting: () => isStarting,
    unmanaged: (): AffinityProblem[] => missing.map(notManaged),
  };
}

/** Moves a process's threads off the CPUs. @returns the threads that are still there, as text */
function leave(processAffinity: ProcessAffinity, cpus: CpuSet, otherwise: CpuSet): string[] {
  if (processAffinity.threadsOn(cpus).length === 0) return [];
  processAffinity.apply({ avoid: cpus, otherwise });
  const tids = processAffinity.threadsOn(cpus);
  return tids.length === 0
    ? []
    : [`${processAffinity.process.name} threads ${few(tids.map(String), MAX_NAMED_THREADS, 16).join(' ')}`];
}
