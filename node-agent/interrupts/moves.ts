import type { InterferenceStatus } from '../../model/agent-status.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { few } from '../../model/errors.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { ChangeSignal, type Services } from '../lifecycle/duty.ts';
import { untilLeft } from '../lifecycle/vacate.ts';
import type { AgentMessages } from '../telemetry/log-messages.ts';
import { Irqbalance, type IrqbalanceDeps } from './irqbalance.ts';
import { type KnobDeps, KnobFinder, partitionCpus } from './knobs.ts';
import { findManagers, IRQBALANCE, type Manager, type ManagersDeps } from './managers.ts';
import { type Cpus, Mover, type MoverDeps, NO_CPUS, sharedCpus } from './mover.ts';
import { clearedCpus } from './originals.ts';

interface InterruptMovesDeps extends KnobDeps, ManagersDeps, MoverDeps, IrqbalanceDeps, Pick<Services, 'log'> {
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  readonly cpus: () => Pick<Cpus, 'online' | 'quiet' | 'cells'>;
}

/** No event reports that a driver has set a mask. */
const POLL_SECONDS = 1.5;
/** Seconds between searches for queues and kernel threads. */
const SEARCH_SECONDS = 10;
const MANAGERS_SECONDS = 600;
/** Seconds for which CPUs stay clear after a release, and before the view shows the owner that they were vacated for. */
const CLEAR_SECONDS = 5;
/** Seconds after hotplug in which drivers set their masks again. */
const HOTPLUG_SECONDS = 5;
const MAX_NAMED = 8;
const MAX_NAME_CHARACTERS = 40;

/**
 * Keeps interrupts, packet steering, unbound workqueues and kernel threads off owned CPUs. The end of the duty leaves
 * them there: containers keep running.
 *
 * Owner: this duty alone. Age: 1.5 s. End: the run's signal; what was moved is saved for the next agent.
 */
export class InterruptMoves {
  readonly #deps: InterruptMovesDeps;
  readonly #mover: Mover;
  readonly #finder: KnobFinder;
  readonly #irqbalance: Irqbalance;
  readonly #problemLog: ProblemLog<AgentMessages>;
  /** As of the last pass; those that are kept clear count as owned. */
  #cpus = NO_CPUS;
  #ownedInView = CpuSet.EMPTY;
  #clear: readonly { readonly cpus: CpuSet; readonly until: number }[] = [];
  #searchAt = 0;
  #managers: readonly Manager[] = [];
  #managersAt = 0;
  #expectedUntil = 0;
  readonly #changed = new ChangeSignal();
  #isRunning = false;

  constructor(deps: InterruptMovesDeps) {
    this.#deps = deps;
    this.#mover = new Mover(deps);
    this.#finder = new KnobFinder(deps);
    this.#irqbalance = new Irqbalance(deps);
    this.#problemLog = new ProblemLog(deps.log);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { assignments, originals, files } = this.#deps;
    originals.load(signal);
    const end = assignments.subscribe(this.#changed.set);
    this.#isRunning = true;
    try {
      while (!signal.aborted) {
        this.#changed.clear();
        const hasMore = this.#pass();
        if (!hasMore) files.closeAll();
        // The threads of Open vSwitch move first: their duty follows a change in the same turn.
        await this.#changed.wait(signal, hasMore ? POLL_SECONDS : undefined);
      }
    } finally {
      end();
      this.#isRunning = false;
      files.closeAll();
    }
  }

  /** Returns when what can be moved has left the CPUs; at once unless it moves. @throws VacateError after 2 s */
  async vacate(cpus: CpuSet, signal?: AbortSignal): Promise<void> {
    const { isMoving, nowSeconds } = this.#deps;
    if (!isMoving || cpus.isEmpty) return;
    this.#keepClear(cpus);
    // The duty's passes give the CPUs back, and fail as this one does.
    this.#changed.set();
    const move = () => {
      if (!this.#isRunning) return [];
      this.#pass();
      return few(this.#mover.staying(cpus), MAX_NAMED, MAX_NAME_CHARACTERS);
    };
    await untilLeft(cpus, { subject: 'interrupts do', move, nowSeconds }, signal);
  }

  /** For display. If nothing is moved, it reads what would be. */
  readonly status = (): Pick<InterferenceStatus, 'mode' | 'items' | 'managers' | 'problems'> => {
    const { isMoving, assignments, originals, files } = this.#deps;
    if (!isMoving) {
      this.#searchAt = 0;
      this.#update(assignments.view().owned);
      // A descriptor shows whether an interrupt is still the one whose original is saved.
      if (originals.isEmpty) files.closeAll();
    }
    return {
      mode: isMoving ? 'move' : 'measure',
      items: this.#mover.items(),
      managers: this.#managers.map(({ name, leaves }) => ({ name, leaves })),
      problems: this.#problems(),
    };
  };

  /** @returns whether there is more to do: without owners, and with every original back, nothing has to be read */
  #pass(): boolean {
    const { isMoving, originals, metrics, log } = this.#deps;
    // What an earlier agent moved is not known yet.
    if (originals.mode === 'unread') return true;
    const avoided = isMoving ? this.#toAvoid() : CpuSet.EMPTY;
    if (avoided.isEmpty && originals.isEmpty) {
      this.#cpus = { ...this.#cpus, owned: CpuSet.EMPTY };
      return false;
    }
    const hasSearched = this.#update(avoided);
    const written = this.#mover.apply();
    if (written > 0) log.info({ avoided, written }, 'moved work of the kernel');
    // CRI-O and tuned tell irqbalance themselves what to leave out.
    const isLeft = this.#managers.some(({ kinds }) => kinds.includes('default'));
    void this.#irqbalance.reconcile(isLeft ? CpuSet.EMPTY : avoided);
    const problems = this.#problems();
    if (problems.length === 0) this.#problemLog.recovered();
    else this.#problemLog.failed(problems.join('; '), 'work of the kernel stays on owned CPUs');
    if (!hasSearched) return true;
    metrics.interruptItems.reset();
    for (const { kind, state } of this.#mover.items()) metrics.interruptItems.inc({ kind, state });
    return true;
  }

  /** Reads what the kernel has, and computes what it should have. @returns whether it also searched for new knobs */
  #update(owned: CpuSet): boolean {
    const { cpus, nowSeconds } = this.#deps;
    const now = nowSeconds();
    const before = this.#cpus;
    this.#cpus = { ...cpus(), owned, partitions: partitionCpus(this.#deps) };
    const isHotplug = !before.online.isEmpty && !before.online.equals(this.#cpus.online);
    if (isHotplug) this.#expectedUntil = now + HOTPLUG_SECONDS;
    const isSearch = isHotplug || !before.owned.equals(owned) || now >= this.#searchAt;
    if (isSearch) this.#searchAt = now + SEARCH_SECONDS;
    if (now >= this.#managersAt) {
      this.#managersAt = now + MANAGERS_SECONDS;
      this.#managers = findManagers(this.#deps);
    }
    const leave = new Set(this.#managers.flatMap(({ kinds }) => kinds));
    const isExpected = now < this.#expectedUntil || this.#irqbalance.isSettling;
    this.#mover.update(this.#finder.find(isSearch), this.#cpus, leave, isExpected);
    return isSearch;
  }

  /**
   * Released CPUs stay clear for a moment: the next VM often gets them. What an earlier agent cleared stays clear until
   * this one knows all owners.
   */
  #toAvoid(): CpuSet {
    const { assignments, originals, nowSeconds } = this.#deps;
    const { owned, free } = assignments.view();
    const released = this.#ownedInView.minus(owned);
    this.#ownedInView = owned;
    if (!released.isEmpty) this.#keepClear(released);
    this.#clear = this.#clear.filter(({ until }) => until > nowSeconds());
    const saved = free === undefined ? [...(originals.value?.knobs.values() ?? [])] : [];
    return unionOf([owned, ...this.#clear.map(({ cpus }) => cpus), ...saved.map(clearedCpus)]);
  }

  #keepClear(cpus: CpuSet): void {
    this.#clear = [...this.#clear, { cpus, until: this.#deps.nowSeconds() + CLEAR_SECONDS }];
  }

  #problems(): string[] {
    const { originals } = this.#deps;
    const isSilent = !this.#irqbalance.isPresent && this.#managers.some(({ name }) => name === IRQBALANCE);
    const problems = [
      isSilent && 'irqbalance has no socket: what it moves to owned CPUs is moved back, within 2 s each time',
      originals.problem &&
        `nothing is moved until the originals can be saved; check /var/lib/plumbline: ${originals.problem}`,
      this.#irqbalance.problem,
      ...this.#fullCells(),
    ];
    return problems.filter((text) => typeof text === 'string');
  }

  #fullCells(): string[] {
    const { online, owned, cells } = this.#cpus;
    if (owned.isEmpty) return [];
    if (sharedCpus(this.#cpus, undefined).isEmpty)
      return ['every CPU has an owner: nothing can be moved; reserve CPUs (reservedSystemCPUs)'];
    const full = cells.filter(({ cpus }) => !cpus.isEmpty && cpus.intersect(online).isSubsetOf(owned));
    return full.map(({ id }) => `NUMA node ${id} has no CPU without an owner: its interrupts run on others`);
  }
}
