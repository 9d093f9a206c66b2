import { setTimeout as delay } from 'node:timers/promises';
import { nodeTarget } from '../../kube/events.ts';
import type { InterferenceStatus } from '../../model/agent-status.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import type { Assignments } from '../assignments/assignments.ts';
import { Guard, type Services } from '../lifecycle/duty.ts';
import type { AgentMessages } from '../telemetry/log-messages.ts';
import { type Cpus, sharedCpus } from './desired.ts';
import type { Irqbalance } from './irqbalance.ts';
import {
  defaultAffinityKnobs,
  IrqKnobs,
  type Knob,
  type KnobDeps,
  type KnobKind,
  KthreadKnobs,
  partitionCpus,
  RpsKnobs,
  workqueueKnobs,
} from './knobs.ts';
import { findManagers, IRQBALANCE, type Manager, type ManagersDeps } from './managers.ts';
import { Mover } from './mover.ts';
import type { Originals } from './originals.ts';

export interface InterruptMovesDeps extends KnobDeps, ManagersDeps, Omit<Services, 'client'> {
  /** Whether to move work; otherwise what an earlier agent moved is moved back. */
  readonly isMoving: boolean;
  readonly assignments: Pick<Assignments, 'view' | 'subscribe'>;
  readonly originals: Originals;
  readonly irqbalance: Irqbalance;
  readonly online: () => CpuSet;
  readonly cells: () => Host['cells'];
  /** CPUs of poll mode drivers and of isolcpus. */
  readonly quiet: () => CpuSet;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** No event reports that a driver has set a mask. */
const POLL_SECONDS = 1.5;
/** Seconds between searches for queues and kernel threads. */
const SEARCH_SECONDS = 10;
const MANAGERS_SECONDS = 600;
const METRICS_SECONDS = 30;
/** Seconds for which CPUs stay clear after a release, and before the view shows the owner that they were vacated for. */
const CLEAR_SECONDS = 5;
/** Seconds after hotplug in which drivers set their masks again. */
const HOTPLUG_SECONDS = 5;
const MAX_VACATE_SECONDS = 2;
const NEXT_WRITES_MILLISECONDS = 100;

/**
 * Keeps interrupts, packet steering, unbound workqueues and kernel threads off owned CPUs. The end of the duty leaves
 * them there: containers keep running.
 *
 * Owner: this duty alone. Age: 1.5 s. End: the run's signal; what was moved is saved for the next agent.
 */
export class InterruptMoves {
  readonly #deps: InterruptMovesDeps;
  readonly #mover: Mover;
  readonly #irqs: IrqKnobs;
  readonly #rps: RpsKnobs;
  readonly #kthreads: KthreadKnobs;
  readonly #problemLog: ProblemLog<AgentMessages>;
  #searched: readonly Knob[] = [];
  #searchAt = 0;
  #managers: readonly Manager[] = [];
  #managersAt = 0;
  #metricsAt = 0;
  #online: CpuSet | undefined;
  #expectedUntil = 0;
  #owned = CpuSet.EMPTY;
  #ownedInView = CpuSet.EMPTY;
  #clear: readonly { readonly cpus: CpuSet; readonly until: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #guard = new Guard();
  #isRunning = false;

  constructor(deps: InterruptMovesDeps) {
    this.#deps = deps;
    this.#mover = new Mover({ ...deps, onForeign: (knob) => this.#foreign(knob) });
    this.#irqs = new IrqKnobs(deps);
    this.#rps = new RpsKnobs(deps);
    this.#kthreads = new KthreadKnobs(deps);
    this.#problemLog = new ProblemLog(deps.log);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { assignments, originals, files } = this.#deps;
    const guard = new Guard();
    this.#guard = guard;
    originals.load(signal);
    this.#isRunning = true;
    const pass = guard.wrap(() => {
      if (this.#isRunning) this.#passAndPlan(pass);
    });
    // Open vSwitch's threads move first.
    const end = assignments.subscribe(() => setImmediate(pass));
    pass();
    try {
      await guard.until(signal);
    } finally {
      end();
      this.#isRunning = false;
      clearTimeout(this.#timer);
      files.closeAll();
    }
  }

  /** Returns when what can be moved has left the CPUs, at the latest after 2 s. */
  async vacate(cpus: CpuSet, signal?: AbortSignal): Promise<void> {
    if (!this.#deps.isMoving || !this.#isRunning || cpus.isEmpty) return;
    this.#keepClear(cpus);
    const until = this.#deps.now() + MAX_VACATE_SECONDS;
    // A failure is the duty's, and does not keep the container from starting.
    const pass = this.#guard.wrap(() => this.#pass());
    pass();
    while (this.#mover.hasMore && this.#deps.now() < until && signal?.aborted !== true) {
      await delay(NEXT_WRITES_MILLISECONDS);
      pass();
    }
  }

  /** For display. If nothing is moved, it reads what would be. */
  readonly status = (): Pick<InterferenceStatus, 'mode' | 'items' | 'managers' | 'problems'> => {
    const { isMoving, files } = this.#deps;
    if (!isMoving) {
      const cpus = this.#cpus(this.#deps.assignments.view().owned);
      const options = { leave: this.#findManagers(), isExpected: true, isDryRun: true };
      this.#mover.pass(this.#withInterrupts(this.#search()), cpus, options);
      files.closeAll();
    }
    return {
      mode: isMoving ? 'move' : 'measure',
      items: this.#mover.items(),
      managers: this.#managers.map(({ name, leaves }) => ({ name, leaves })),
      problems: this.#problems(),
    };
  };

  #passAndPlan(pass: () => void): void {
    clearTimeout(this.#timer);
    this.#pass();
    const { originals, isMoving } = this.#deps;
    // Without owners, and with every original back, nothing has to be read.
    if (originals.isEmpty && (!isMoving || this.#owned.isEmpty)) this.#deps.files.closeAll();
    else this.#timer = setTimeout(pass, this.#mover.hasMore ? NEXT_WRITES_MILLISECONDS : POLL_SECONDS * 1000);
  }

  #pass(): void {
    const { isMoving, originals, irqbalance, now, log } = this.#deps;
    // Until an agent that has started knows the owners, what an earlier one moved stays.
    if (isMoving && this.#deps.assignments.view().free === undefined) return;
    const owned = isMoving ? this.#avoided() : CpuSet.EMPTY;
    const isNew = !owned.equals(this.#owned);
    this.#owned = owned;
    if (owned.isEmpty && originals.isEmpty) return;
    const cpus = this.#cpus(owned);
    if (isNew || now() >= this.#searchAt) this.#searched = this.#search();
    else this.#searched = this.#searched.flatMap(readAgain);
    const isExpected = now() < this.#expectedUntil || irqbalance.isSettling;
    const knobs = this.#withInterrupts(this.#searched);
    const written = this.#mover.pass(knobs, cpus, { leave: this.#findManagers(), isExpected, isDryRun: false });
    if (written > 0) log.info({ avoided: owned, written }, 'moved work of the kernel');
    // CRI-O and tuned tell irqbalance themselves what to leave out.
    const isLeft = this.#managers.some(({ kinds }) => kinds.includes('default'));
    void irqbalance.reconcile(isLeft ? CpuSet.EMPTY : owned);
    this.#report();
  }

  #search(): Knob[] {
    this.#searchAt = this.#deps.now() + SEARCH_SECONDS;
    return [...workqueueKnobs(this.#deps), ...this.#rps.scan(), ...this.#kthreads.scan()];
  }

  /** The mask of new interrupts first, which those have. */
  #withInterrupts(others: readonly Knob[]): Knob[] {
    return [...defaultAffinityKnobs(this.#deps), ...this.#irqs.scan(), ...others];
  }

  #cpus(owned: CpuSet): Cpus {
    const online = this.#deps.online();
    const isHotplug = this.#online?.equals(online) === false;
    this.#online = online;
    if (isHotplug) {
      this.#expectedUntil = this.#deps.now() + HOTPLUG_SECONDS;
      this.#searchAt = 0;
    }
    const { quiet, cells } = this.#deps;
    return { online, owned, quiet: quiet(), cells: cells(), partitions: partitionCpus(this.#deps) };
  }

  #findManagers(): ReadonlySet<KnobKind> {
    const now = this.#deps.now();
    if (now >= this.#managersAt) {
      this.#managersAt = now + MANAGERS_SECONDS;
      this.#managers = findManagers(this.#deps);
    }
    return new Set(this.#managers.flatMap(({ kinds }) => kinds));
  }

  /** Released CPUs stay clear for a moment: the next VM often gets them. */
  #avoided(): CpuSet {
    const { owned } = this.#deps.assignments.view();
    const released = this.#ownedInView.minus(owned);
    this.#ownedInView = owned;
    if (!released.isEmpty) this.#keepClear(released);
    this.#clear = this.#clear.filter(({ until }) => until > this.#deps.now());
    return unionOf([owned, ...this.#clear.map(({ cpus }) => cpus)]);
  }

  #keepClear(cpus: CpuSet): void {
    this.#clear = [...this.#clear, { cpus, until: this.#deps.now() + CLEAR_SECONDS }];
  }

  #problems(): string[] {
    const { originals, irqbalance } = this.#deps;
    const cpus = this.#cpus(this.#owned);
    const full = cpus.cells.filter(
      ({ cpus: all }) => !all.isEmpty && all.intersect(cpus.online).isSubsetOf(cpus.owned),
    );
    const isNone = sharedCpus(cpus, undefined).isEmpty;
    const isSilent = !irqbalance.isPresent && this.#managers.some(({ name }) => name === IRQBALANCE);
    return [
      isSilent && 'irqbalance has no socket: what it moves to owned CPUs is moved back, within 2 s each time',
      originals.problem && `nothing is moved until the originals can be saved; check --state-dir: ${originals.problem}`,
      irqbalance.problem,
      ...(isNone ? ['every CPU has an owner: nothing can be moved; reserve CPUs (reservedSystemCPUs)'] : []),
      ...(isNone
        ? []
        : full.map(({ id }) => `NUMA node ${id} has no CPU without an owner: its interrupts run on others`)),
    ].filter((text) => typeof text === 'string');
  }

  #report(): void {
    const { metrics, now } = this.#deps;
    const problems = this.#problems();
    if (problems.length === 0) this.#problemLog.recovered();
    else this.#problemLog.failed(problems.join('; '), 'work of the kernel stays on owned CPUs');
    if (now() < this.#metricsAt) return;
    this.#metricsAt = now() + METRICS_SECONDS;
    metrics.interruptItems.reset();
    for (const { kind, state } of this.#mover.items()) metrics.interruptItems.inc({ kind, state });
  }

  #foreign({ name, kind }: Knob): void {
    const { events, nodeName } = this.#deps;
    const message = `another process keeps moving ${kind} ${name} to owned CPUs; the agent leaves it alone for ten minutes`;
    events.record(nodeTarget(nodeName), { type: 'Warning', reason: 'InterruptsContended', message });
  }
}

function readAgain(knob: Knob): Knob[] {
  const current = knob.read();
  return current === undefined ? [] : [{ ...knob, current }];
}
