import { nodeTarget } from '../../kube/events.ts';
import type { InterferenceStatus } from '../../model/agent-status.ts';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { few, PlumblineError } from '../../model/errors.ts';
import type { Host } from '../../model/host.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { sleep } from '../../runtime/time.ts';
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

interface InterruptMovesDeps extends KnobDeps, ManagersDeps, Omit<Services, 'client'> {
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
  readonly nowSeconds: () => number;
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
/** Maximum seconds that a container's start waits, as for the threads of Open vSwitch. */
const VACATE_DEADLINE_SECONDS = 2;
const VACATE_POLL_SECONDS = 0.02;
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
  #avoided = CpuSet.EMPTY;
  #ownedInView = CpuSet.EMPTY;
  #clear: readonly { readonly cpus: CpuSet; readonly until: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** Of the current run; undefined outside of it. */
  #guard: Guard | undefined;

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
    originals.load(signal);
    this.#guard = guard;
    const pass = guard.wrap(() => this.#passAndPlan(guard));
    // Open vSwitch's threads move first.
    const end = assignments.subscribe(() => setImmediate(pass));
    pass();
    try {
      await guard.until(signal);
    } finally {
      end();
      this.#guard = undefined;
      clearTimeout(this.#timer);
      files.closeAll();
    }
  }

  /** Returns when what can be moved has left the CPUs; at once unless it moves. @throws Error after 2 s */
  async vacate(cpus: CpuSet, signal?: AbortSignal): Promise<void> {
    const { isMoving, nowSeconds } = this.#deps;
    if (!isMoving || cpus.isEmpty) return;
    this.#keepClear(cpus);
    const until = nowSeconds() + VACATE_DEADLINE_SECONDS;
    while (this.#guard !== undefined) {
      this.#passOrFail(this.#guard);
      const staying = this.#mover.staying(cpus);
      if (staying.length === 0) return;
      const names = few(staying, MAX_NAMED, MAX_NAME_CHARACTERS).join(', ');
      if (nowSeconds() >= until)
        throw new PlumblineError('vacate', `interrupts do not leave CPUs ${cpus.brief}: ${names}`);
      await sleep(VACATE_POLL_SECONDS, signal);
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

  #passAndPlan(guard: Guard): void {
    if (this.#guard !== guard) return;
    clearTimeout(this.#timer);
    this.#pass();
    const { originals, isMoving, files } = this.#deps;
    // Without owners, and with every original back, nothing has to be read.
    if (originals.isEmpty && (!isMoving || this.#avoided.isEmpty)) files.closeAll();
    else
      this.#timer = setTimeout(
        guard.wrap(() => this.#passAndPlan(guard)),
        POLL_SECONDS * 1000,
      );
  }

  /** A failure restarts the duty, and does not count as vacated. */
  #passOrFail(guard: Guard): void {
    try {
      this.#passAndPlan(guard);
    } catch (error) {
      guard.fail(error);
      throw error;
    }
  }

  #pass(): void {
    const { isMoving, originals, irqbalance, nowSeconds, log } = this.#deps;
    const avoided = isMoving ? this.#toAvoid() : CpuSet.EMPTY;
    const isNew = !avoided.equals(this.#avoided);
    this.#avoided = avoided;
    if (avoided.isEmpty && originals.isEmpty) return;
    const cpus = this.#cpus(avoided);
    if (isNew || nowSeconds() >= this.#searchAt) this.#searched = this.#search();
    else this.#searched = this.#searched.flatMap(readAgain);
    const isExpected = nowSeconds() < this.#expectedUntil || irqbalance.isSettling;
    const all = this.#withInterrupts(this.#searched);
    const written = this.#mover.pass(all, cpus, { leave: this.#findManagers(), isExpected, isDryRun: false });
    if (written > 0) log.info({ avoided, written }, 'moved work of the kernel');
    // CRI-O and tuned tell irqbalance themselves what to leave out.
    const isLeft = this.#managers.some(({ kinds }) => kinds.includes('default'));
    void irqbalance.reconcile(isLeft ? CpuSet.EMPTY : avoided);
    this.#report();
  }

  #search(): Knob[] {
    this.#searchAt = this.#deps.nowSeconds() + SEARCH_SECONDS;
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
      this.#expectedUntil = this.#deps.nowSeconds() + HOTPLUG_SECONDS;
      this.#searchAt = 0;
    }
    const { quiet, cells } = this.#deps;
    return { online, owned, quiet: quiet(), cells: cells(), partitions: partitionCpus(this.#deps) };
  }

  #findManagers(): ReadonlySet<KnobKind> {
    const now = this.#deps.nowSeconds();
    if (now >= this.#managersAt) {
      this.#managersAt = now + MANAGERS_SECONDS;
      this.#managers = findManagers(this.#deps);
    }
    return new Set(this.#managers.flatMap(({ kinds }) => kinds));
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
    const cleared = saved.map(({ original, written }) => original.minus(written.at(-1) ?? original));
    return unionOf([owned, ...this.#clear.map(({ cpus }) => cpus), ...cleared]);
  }

  #keepClear(cpus: CpuSet): void {
    this.#clear = [...this.#clear, { cpus, until: this.#deps.nowSeconds() + CLEAR_SECONDS }];
  }

  #problems(): string[] {
    const { originals, irqbalance } = this.#deps;
    const isSilent = !irqbalance.isPresent && this.#managers.some(({ name }) => name === IRQBALANCE);
    const problems = [
      isSilent && 'irqbalance has no socket: what it moves to owned CPUs is moved back, within 2 s each time',
      originals.problem &&
        `nothing is moved until the originals can be saved; check /var/lib/plumbline: ${originals.problem}`,
      irqbalance.problem,
      ...this.#fullCells(),
    ];
    return problems.filter((text) => typeof text === 'string');
  }

  #fullCells(): string[] {
    const cpus = this.#cpus(this.#avoided);
    if (sharedCpus(cpus, undefined).isEmpty)
      return ['every CPU has an owner: nothing can be moved; reserve CPUs (reservedSystemCPUs)'];
    const full = cpus.cells.filter(
      ({ cpus: all }) => !all.isEmpty && all.intersect(cpus.online).isSubsetOf(cpus.owned),
    );
    return full.map(({ id }) => `NUMA node ${id} has no CPU without an owner: its interrupts run on others`);
  }

  #report(): void {
    const { metrics, nowSeconds } = this.#deps;
    const problems = this.#problems();
    if (problems.length === 0) this.#problemLog.recovered();
    else this.#problemLog.failed(problems.join('; '), 'work of the kernel stays on owned CPUs');
    if (nowSeconds() < this.#metricsAt) return;
    this.#metricsAt = nowSeconds() + METRICS_SECONDS;
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
