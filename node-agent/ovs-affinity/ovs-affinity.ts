import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { OvsStatus } from '../../model/agent-status.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { everyTick } from '../../runtime/time.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { FileLimitError, unlessMissing } from '../files/bounded-file.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { Contention } from '../lifecycle/contention.ts';
import { Guard, Throttle } from '../lifecycle/duty.ts';
import type { AgentMessages } from '../telemetry/log-messages.ts';
import { OvsProcesses, type OvsProcessesDeps } from './ovs-processes.ts';
import { type AffinityProblem, foreignWriter, pollsOwned, textsOf } from './problems.ts';
import { AffinityReporting, type ReportingDeps } from './reporting.ts';
import { Targets, type TargetsDeps } from './targets.ts';

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
  readonly #switch: OvsProcesses;
  readonly #reporting: AffinityReporting;
  readonly #targets: Targets;
  readonly #contention: Contention;
  readonly #enablerProblems: ProblemLog<AgentMessages>;
  readonly #restoreProblems: ProblemLog<AgentMessages>;
  readonly #recheck = new Throttle(() => this.#guarded(() => this.#check()), RECHECK_SECONDS, 0);
  readonly #secondRestore = new Throttle(() => this.#guarded(() => this.#restoreAgain()), RECHECK_SECONDS, 0);
  #guard = new Guard();
  #isEnabled = false;
  /** Whether the last pass left the exact set to another writer. */
  #yields = false;

  constructor(deps: OvsAffinityDeps) {
    this.#deps = deps;
    this.#switch = new OvsProcesses(deps);
    this.#reporting = new AffinityReporting(deps);
    this.#targets = new Targets(deps, () => this.#guarded(() => this.#pass(performance.now(), true)));
    this.#contention = new Contention(deps.nowSeconds);
    this.#enablerProblems = new ProblemLog(deps.log, { file: deps.enablerFile });
    this.#restoreProblems = new ProblemLog(deps.log);
  }

  #guarded(work: () => void): void {
    this.#guard.wrap(work)();
  }

  /** The duty: keeps OVS off owned CPUs while enabled. Its end gives OVS no owned CPU; disabling restores all masks. */
  async run(signal: AbortSignal): Promise<void> {
    const { assignments, enablerFile, rundir, onPmdMask, checkInterval, log } = this.#deps;
    this.#guard = new Guard();
    const guard = this.#guard;
    const pass = guard.wrap((at: number) => this.#pass(at));
    const passNow = () => pass(performance.now());
    const onPidfile = (name: string | undefined) => {
      if (name === undefined || name.endsWith('.pid')) passNow();
    };
    const onEnabler = guard.wrap((name: string | undefined) => {
      if (name === undefined || name === basename(enablerFile)) this.#reconcileEnabler();
    });
    // The agent's lock is held from here on. Masks of an earlier agent replace those that this one has seen.
    this.#switch.load(signal, () =>
      this.#guarded(() => (this.#isEnabled ? this.#pass(performance.now()) : this.#restoreAgain())),
    );
    this.#reconcileEnabler();
    // The feature may have been disabled after an earlier agent was killed: undo what that agent did.
    if (!this.#isEnabled && enablerState(enablerFile) === 'off') this.#disable(false);
    watchDirectory({ path: dirname(enablerFile), signal, onChange: onEnabler, log });
    watchDirectory({ path: rundir, signal, onChange: onPidfile, log });
    const endChecks = everyTick(
      checkInterval,
      guard.wrap(() => this.#check()),
    );
    const ends = [assignments.subscribe((_view, at) => pass(at)), onPmdMask(passNow), endChecks];
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
      await this.#switch.vacate(cpus, this.#targets.otherwise(assignments.view(), this.pmdCpus()), signal);
    } catch (error) {
      metrics.ovsErrors.inc({ cause: 'not-vacated' });
      events.warn('OvsNotVacated', (error as Error).message);
      throw error;
    }
  }

  /** CPUs of OVS's poll mode driver threads at the last pass; empty while disabled. */
  pmdCpus(): CpuSet {
    return this.#switch.pmdCpus();
  }

  problems(): readonly string[] {
    return textsOf(this.#reporting.current);
  }

  subscribe(listener: () => void): () => void {
    return this.#reporting.subscribe(listener);
  }

  /** For display: every thread, its current and desired CPUs, and the reasons. It changes no mask. */
  readonly status = (): OvsStatus => {
    const { lastTarget, why, readsContainers } = this.#targets;
    const { checkpoint = null, podResources = null, claims } = this.#deps.assignments.view().sources;
    const processes = this.#switch.describe(lastTarget);
    // A daemon may have ended since the last pass.
    const unmanaged = this.#isEnabled ? textsOf(this.#switch.unmanaged()) : [];
    return {
      enabled: this.#isEnabled,
      enablerFile: this.#deps.enablerFile,
      desired: lastTarget?.toString() ?? null,
      why: [...why],
      problems: [...new Set([...this.problems(), ...unmanaged])],
      sources: [
        { name: 'cpu_manager_state', problem: checkpoint },
        { name: 'PodResources', problem: podResources },
        ...(claims === undefined ? [] : [{ name: 'CDI', problem: claims }]),
        { name: 'cgroups', problem: readsContainers ? null : 'the kubelet’s cgroups are not found' },
      ],
      processes,
    };
  };

  /** `at`: when this process learned of the reason for the pass, in monotonic milliseconds. */
  #pass(at: number, mayGrow = false): void {
    if (!this.#isEnabled) return;
    const { assignments, enablerFile, metrics } = this.#deps;
    const view = assignments.view();
    const pmd = this.#switch.list();
    this.#yields = this.#contention.mode === 'contended';
    const target = this.#yields ? this.#targets.ownedOnly(view, pmd) : this.#targets.target(view, pmd, mayGrow);
    const { moved, displaced, problems } = this.#switch.apply(target);
    this.#contention.note(displaced);
    const { mode } = this.#contention;
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
      if (!this.#switch.isRestored) this.#reportRestore(this.#switch.restoreRemaining().problems);
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
    events.note('OvsAffinityEnabled', `Open vSwitch runs on the CPUs without an owner (${enablerFile})`);
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
    if (problems.length > 0) events.warn('OvsAffinityIncomplete', textsOf(problems).join('; '));
    else if (wasEnabled)
      events.note('OvsAffinityDisabled', 'the threads of Open vSwitch have their original CPUs again');
    this.#secondRestore.soon();
  }

  /** Threads and daemons that were starting have inherited a mask before /proc and the pidfiles listed them. */
  #restoreAgain(): void {
    this.#switch.restore();
    this.#reportRestore(this.#switch.restoreRemaining().problems);
  }

  /** What could not be restored stays saved, and is tried again by each check. */
  #reportRestore(problems: readonly AffinityProblem[]): void {
    const texts = textsOf(problems).join('; ');
    if (texts === '') this.#restoreProblems.recovered();
    else this.#restoreProblems.failed(texts, 'some threads did not get their CPUs back');
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

/** On if the enabler file exists and is not empty; the error if that cannot be determined now (EIO, EACCES, …). */
function enablerState(file: string): 'on' | 'off' | Error {
  try {
    const stats = unlessMissing(() => statSync(file));
    if (stats?.isFile() === false) return new FileLimitError(file, 'not a regular file');
    return stats !== undefined && stats.size > 0 ? 'on' : 'off';
  } catch (error) {
    return error as Error;
  }
}
