import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { OvsStatus } from '../../model/agent-status.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { everyTick } from '../../runtime/time.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { FileLimitError } from '../files/bounded-file.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { Guard, Throttle } from '../lifecycle/duty.ts';
import type { AgentMessages } from '../telemetry/log-messages.ts';
import { OvsProcesses, type OvsProcessesDeps } from './ovs-processes.ts';
import { type AffinityProblem, foreignWriter, pollsOwned } from './problems.ts';
import { AffinityReporting, Contention, type ReportingDeps } from './reporting.ts';
import { Targets, type TargetsDeps } from './targets.ts';
import type { VirtualSwitch } from './virtual-switch.ts';

interface OvsAffinityDeps extends OvsProcessesDeps, TargetsDeps, ReportingDeps {
  readonly enablerFile: string;
  /** Seconds between periodic checks. If nothing changed, a check changes nothing and makes few system calls. */
  readonly checkInterval: number;
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  /** Calls the listener when `pmdMask` may have changed. @returns a function that ends the subscription */
  readonly onPmdMask: (listener: () => void) => () => void;
}

/** Seconds until the check for another writer, for a monitor that has started, and of restored threads. */
const RECHECK_SECONDS = 1;

/**
 * Off, until the enabler file exists and is not empty; on, until it does not, or the duty ends. The first pass saves
 * the masks, and disabling restores them. The end of the duty does not: containers keep running. Each event causes one
 * pass over all threads, synchronously in its own callback; the periodic check only if a thread is not as the last pass
 * left it. While another process keeps changing masks, passes only keep the threads off owned CPUs. Invariant: a pass
 * never gives a thread a CPU that the view reports as owned, nor one vacated for a starting container.
 *
 * Owner: this duty alone sets the threads' CPUs. Age: as of the last pass; a check follows after `checkInterval`. End:
 * the run's signal.
 */
export class OvsAffinity {
  readonly #deps: OvsAffinityDeps;
  readonly #switch: VirtualSwitch;
  readonly #reporting: AffinityReporting;
  readonly #targets: Targets;
  readonly #contention: Contention;
  readonly #enablerProblems: ProblemLog<AgentMessages>;
  readonly #restoreProblems: ProblemLog<AgentMessages>;
  readonly #recheck = new Throttle(() => this.#guard.wrap(() => this.#check())(), RECHECK_SECONDS, 0);
  readonly #secondRestore = new Throttle(() => this.#guard.wrap(() => this.#restoreAgain())(), RECHECK_SECONDS, 0);
  #guard = new Guard();
  #isEnabled = false;
  /** Whether the last pass left the exact set to another writer. */
  #yields = false;

  constructor(deps: OvsAffinityDeps) {
    this.#deps = deps;
    this.#switch = new OvsProcesses(deps);
    this.#reporting = new AffinityReporting(deps);
    this.#targets = new Targets(deps, () => this.#guard.wrap(() => this.#pass(performance.now(), true))());
    this.#contention = new Contention(deps.nowSeconds);
    this.#enablerProblems = new ProblemLog(deps.log, { file: deps.enablerFile });
    this.#restoreProblems = new ProblemLog(deps.log);
  }

  /** The duty: keeps OVS off owned CPUs while enabled. Its end gives OVS no owned CPU; disabling restores all masks. */
  async run(signal: AbortSignal): Promise<void> {
    const { assignments, enablerFile, rundir, onPmdMask, checkInterval, log } = this.#deps;
    const guard = new Guard();
    this.#guard = guard;
    // The agent's lock is held from here on.
    this.#switch.load(
      signal,
      guard.wrap(() => this.#originalsRead()),
    );
    this.#reconcileEnabler();
    // The feature may have been disabled after an earlier agent was killed: undo what that agent did.
    if (!this.#isEnabled && enablerState(enablerFile) === 'off') this.#disable(false);
    const pass = guard.wrap((at: number) => this.#pass(at));
    const passNow = () => pass(performance.now());
    const onPidfile = (name: string | undefined) => {
      if (name === undefined || name.endsWith('.pid')) passNow();
    };
    const onEnabler = guard.wrap((name: string | undefined) => {
      if (name === undefined || name === basename(enablerFile)) this.#reconcileEnabler();
    });
    watchDirectory({ path: dirname(enablerFile), signal, onChange: onEnabler, log });
    watchDirectory({ path: rundir, signal, onChange: onPidfile, log });
    const check = guard.wrap(() => this.#check());
    const ends = [assignments.subscribe((_view, at) => pass(at)), onPmdMask(passNow), everyTick(checkInterval, check)];
    try {
      await guard.until(signal);
    } finally {
      for (const end of ends) end();
      this.#secondRestore.cancel();
      this.#end();
    }
  }

  /** Returns when no thread may run on the CPUs; at once while disabled. @throws VacateError after 2 s */
  async vacate(cpus: CpuSet, signal?: AbortSignal): Promise<void> {
    if (!this.#isEnabled || cpus.isEmpty) return;
    const { assignments, metrics, events } = this.#deps;
    this.#targets.vacate(cpus);
    try {
      const otherwise = this.#targets.otherwise(assignments.view(), this.#switch.pmdCpus());
      await this.#switch.vacate(cpus, otherwise, signal);
    } catch (error) {
      metrics.ovsErrors.inc({ cause: 'not-vacated' });
      events.notVacated((error as Error).message);
      throw error;
    }
  }

  /** CPUs of OVS's poll mode driver threads at the last pass; empty while disabled. */
  pmdCpus(): CpuSet {
    return this.#switch.pmdCpus();
  }

  problems(): readonly string[] {
    return this.#reporting.current.map(({ text }) => text);
  }

  subscribe(listener: () => void): () => void {
    return this.#reporting.subscribe(listener);
  }

  /** For display: every thread, its current and desired CPUs, and the reasons. It changes no mask. */
  readonly status = (): OvsStatus => {
    const targets = this.#targets;
    const { sources } = this.#deps.assignments.view();
    const processes = this.#switch.describe();
    // A daemon may have ended since the last pass.
    const unmanaged = this.#isEnabled ? this.#switch.unmanaged().map(({ text }) => text) : [];
    const here = targets.lastTarget?.intersect(this.#switch.machine).toString() ?? null;
    return {
      enabled: this.#isEnabled,
      enablerFile: this.#deps.enablerFile,
      desired: targets.lastTarget?.toString() ?? null,
      why: [...targets.why],
      problems: [...new Set([...this.problems(), ...unmanaged])],
      sources: [
        { name: 'cpu_manager_state', problem: sources.checkpoint ?? null },
        { name: 'PodResources', problem: sources.podResources ?? null },
        ...(sources.claims === undefined ? [] : [{ name: 'CDI', problem: sources.claims }]),
        {
          name: 'cgroups',
          problem: targets.readsContainers ? null : 'the kubelet’s cgroups are not found',
        },
      ],
      processes: processes.map(({ name, role, pid, threads }) => ({
        name,
        role,
        pid,
        threads: threads.map(({ tid, name: comm, allowed, note }) => ({
          tid,
          name: comm,
          allowed: allowed.toString(),
          desired: note === 'pmd' ? null : here,
          note: note ?? null,
        })),
      })),
    };
  };

  /** `at`: when this process learned of the reason for the pass, in monotonic milliseconds. */
  #pass(at: number, mayGrow = false): void {
    if (!this.#isEnabled) return;
    const { assignments, enablerFile, metrics } = this.#deps;
    const contention = this.#contention;
    const view = assignments.view();
    const snapshot = this.#switch.snapshot();
    const { pmdCpus: pmd } = snapshot;
    this.#yields = contention.mode === 'contended';
    const target = this.#yields ? this.#targets.ownedOnly(view, pmd) : this.#targets.target(view, pmd, mayGrow);
    const { moved, displaced, problems } = this.#switch.apply(target, snapshot);
    contention.note(displaced);
    const { mode } = contention;
    metrics.ovsContended.set(mode === 'contended' ? 1 : 0);
    if (mode === 'suspected' || this.#switch.isStarting) this.#recheck.soon();
    this.#reporting.moved(target, moved, view, at);
    const others = mode === 'contended' ? [foreignWriter(enablerFile)] : [];
    this.#reporting.problems([...problems, ...pollsOwned(pmd.intersect(view.owned)), ...others]);
    this.#reporting.reserved(view.reserved);
  }

  #check(): void {
    this.#reconcileEnabler();
    if (!this.#isEnabled) {
      if (!this.#switch.isRestored) this.#restoreRemaining();
      return;
    }
    this.#reporting.unknown(this.#targets.heldBack);
    const isOver = this.#yields && this.#contention.mode !== 'contended';
    if (!isOver && !this.#targets.isDue() && this.#switch.isAsLeft()) return;
    this.#switch.refreshMachine();
    this.#pass(performance.now());
  }

  #reconcileEnabler(): void {
    const { enablerFile, log, metrics, events } = this.#deps;
    const state = enablerState(enablerFile);
    if (state instanceof Error) {
      this.#enablerProblems.failed(state, 'reading the OVS enabler file failed; keeping its last state');
      return;
    }
    this.#enablerProblems.recovered();
    const isRequested = state === 'on';
    if (isRequested === this.#isEnabled) return;
    this.#isEnabled = isRequested;
    metrics.ovsEnabled.set(isRequested ? 1 : 0);
    if (!isRequested) {
      this.#disable(true);
      return;
    }
    this.#secondRestore.cancel();
    log.info({ enablerFile }, 'Starting OVS daemon CPU pinning');
    events.enabled(enablerFile);
    this.#switch.refreshMachine();
    this.#pass(performance.now(), true);
  }

  /** Restores all masks because the feature was disabled, even to CPUs that containers own. */
  #disable(wasEnabled: boolean): void {
    const { enablerFile, log, events } = this.#deps;
    this.#reset();
    const { moved, problems } = this.#switch.restore();
    if (wasEnabled || moved > 0) log.info({ enablerFile, threads: moved }, 'OVS CPU affinity pinning disabled');
    this.#reportRestore(problems);
    if (problems.length > 0) events.incomplete(problems.map(({ text }) => text));
    else if (wasEnabled) events.disabled();
    this.#secondRestore.soon();
  }

  /** Threads and daemons that were starting have inherited a mask before /proc and the pidfiles listed them. */
  #restoreAgain(): void {
    this.#switch.restore();
    this.#restoreRemaining();
  }

  /** What could not be restored stays saved, and is tried again by each check. */
  #restoreRemaining(): void {
    this.#reportRestore(this.#switch.restoreRemaining().problems);
  }

  #reportRestore(problems: readonly AffinityProblem[]): void {
    const texts = problems.map(({ text }) => text).join('; ');
    if (texts === '') this.#restoreProblems.recovered();
    else this.#restoreProblems.failed(texts, 'some threads did not get their CPUs back');
  }

  /** The masks that an earlier agent saved could not be read before: they replace those that this one has seen. */
  #originalsRead(): void {
    if (this.#isEnabled) this.#pass(performance.now());
    else this.#restoreAgain();
  }

  /** Leaves the masks when the agent stops: containers own CPUs whether the agent runs or not. */
  #end(): void {
    if (!this.#isEnabled) return;
    this.#isEnabled = false;
    this.#deps.metrics.ovsEnabled.set(0);
    this.#switch.leave();
    this.#deps.log.info('agent stopping; OVS threads stay off owned CPUs');
    this.#reset();
  }

  #reset(): void {
    this.#recheck.cancel();
    this.#deps.metrics.ovsContended.set(0);
    this.#yields = false;
    this.#targets.reset();
    this.#reporting.reset();
  }
}

/** Error codes of a missing file. With any other error, the state of the file is unknown. */
const ABSENT: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR']);

/** On if the enabler file exists and is not empty; the error if that cannot be determined now (EIO, EACCES, …). */
export function enablerState(file: string): 'on' | 'off' | Error {
  try {
    const stats = statSync(file);
    if (!stats.isFile()) return new FileLimitError(file, 'not a regular file');
    return stats.size > 0 ? 'on' : 'off';
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return ABSENT.has(code) ? 'off' : (error as Error);
  }
}
