import type { MovedItem } from '../../model/agent-status.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { type Cpus, desiredCpus, isManagedError, sharedCpus, withVectors } from './desired.ts';
import { errorCode, isRpsKey, type Knob, type KnobKind } from './knobs.ts';
import type { Originals, SavedKnob } from './originals.ts';

export interface MoverDeps {
  readonly originals: Originals;
  readonly metrics: AgentMetrics;
  /** Monotonic seconds. */
  readonly now: () => number;
  /** Called when another process keeps setting a knob. */
  readonly onForeign: (knob: Knob) => void;
}

/** Writes a second, and at once after a quiet second. */
const WRITES_PER_SECOND = 200;
/** Seconds until a write that the kernel refused is tried again. */
const RETRY_SECONDS = 30;
/** Seconds within which a second foreign write means that another process owns the knob. */
const REPEAT_SECONDS = 60;
/** Seconds for which a knob is left to that process. */
const HANDS_OFF_SECONDS = 600;
const NO_VECTOR = 'ENOSPC';
/** Queues of interfaces that have left, such as for a pod, and may return with the mask that the agent wrote. */
const MAX_AWAY = 256;

/** What is known about one knob. Owner: the mover. Age: the last pass. End: when the knob is gone. */
interface Entry {
  knob: Knob;
  original: CpuSet;
  /** What the agent set, as read back; undefined while the knob has its original. */
  written: CpuSet | undefined;
  /** For which value that was written: the kernel may accept a part. */
  target: CpuSet | undefined;
  desired: CpuSet | undefined;
  /** The kernel's error of the last write. */
  refused: string | undefined;
  retryAt: number;
  displacedAt: number;
  foreignUntil: number;
}

export interface PassOptions {
  /** Kinds that another program manages: they get their originals back. */
  readonly leave: ReadonlySet<KnobKind>;
  /** Whether values that others changed do not count as a foreign writer: after hotplug, or while irqbalance settles. */
  readonly isExpected: boolean;
  /** Changes nothing: `items` are what a pass would do. */
  readonly isDryRun: boolean;
}

/**
 * Keeps work of the kernel off owned CPUs. Each value is computed from the saved original and the owners, never from the
 * current value, so that with fewer owners it widens again; without owners all originals are back.
 *
 * Owner: the duty. Age: the last pass. End: an entry's with its knob.
 */
export class Mover {
  readonly #deps: MoverDeps;
  #entries: ReadonlyMap<string, Entry> = new Map();
  #writes = WRITES_PER_SECOND;
  #writesAt = Number.NEGATIVE_INFINITY;
  #hasMore = false;

  constructor(deps: MoverDeps) {
    this.#deps = deps;
  }

  /** Whether the rate limit left writes for the next pass. */
  get hasMore(): boolean {
    return this.#hasMore;
  }

  /** @returns the number of values written */
  pass(knobs: readonly Knob[], cpus: Cpus, { leave, isExpected, isDryRun }: PassOptions): number {
    const entries = new Map<string, Entry>();
    for (const knob of knobs) entries.set(knob.key, this.#meet(knob, cpus, isExpected, entries));
    this.#entries = entries;
    for (const entry of entries.values()) {
      const isLeft = leave.has(entry.knob.kind) || entry.foreignUntil > this.#deps.now();
      entry.desired = isLeft ? entry.original : desiredCpus(entry.knob, entry.original, cpus);
      if (entry.foreignUntil > this.#deps.now()) entry.desired = undefined;
    }
    if (isDryRun) return 0;
    const due = [...entries.values()].filter((entry) => this.#isDue(entry));
    this.#save(due);
    // Without a saved original, a change could not be undone.
    if (this.#deps.originals.problem !== undefined) return 0;
    const written = this.#write(due, cpus);
    if (due.length > 0) this.#save([]);
    return written;
  }

  /** What has been moved or should be, by kind and name. */
  items(): MovedItem[] {
    const listed = [...this.#entries.values()].map((entry) => ({ entry, state: this.#stateOf(entry) }));
    return listed.flatMap(({ entry: { knob, original, desired, refused }, state }) => {
      if (state === undefined) return [];
      const { kind, name, current } = knob;
      const texts = { original: original.toString(), desired: desired?.toString() ?? null, actual: current.toString() };
      return [{ kind, name, ...texts, state, error: state === 'refused' ? (refused ?? null) : null }];
    });
  }

  #meet(knob: Knob, cpus: Cpus, isExpected: boolean, met: ReadonlyMap<string, Entry>): Entry {
    const before = this.#entries.get(knob.key);
    const { current } = knob;
    if (before === undefined) return this.#first(knob, cpus, met);
    // The same number serves another request: what the driver set is the original.
    if (before.knob.instance !== knob.instance) return inherited(knob, cpus, met) ?? newEntry(knob, current);
    const entry = before;
    entry.knob = knob;
    if (entry.written === undefined) {
      entry.original = current;
      return entry;
    }
    if (isValue(knob, entry.written, cpus, isExpected)) return entry;
    const { kind } = knob;
    // Only what the agent cleared is its own there: CRI-O and tuned change other bits.
    const own = kind === 'default' ? entry.original.minus(entry.written) : CpuSet.EMPTY;
    entry.original = current.union(own);
    entry.written = kind === 'default' ? current : undefined;
    entry.target = undefined;
    if (isExpected || !current.intersects(cpus.owned)) return entry;
    const { metrics, now, onForeign } = this.#deps;
    metrics.interruptsDisplaced.inc({ kind });
    if (now() - entry.displacedAt <= REPEAT_SECONDS) {
      entry.foreignUntil = now() + HANDS_OFF_SECONDS;
      onForeign(knob);
    }
    entry.displacedAt = now();
    return entry;
  }

  /** A knob that this agent has not seen: an earlier one may have set it. */
  #first(knob: Knob, cpus: Cpus, met: ReadonlyMap<string, Entry>): Entry {
    const { current } = knob;
    const saved = this.#deps.originals.get(knob.key);
    const ours = saved?.written.find((written) => isValue(knob, written, cpus, false));
    if (saved !== undefined && ours !== undefined) return { ...newEntry(knob, saved.original), written: ours };
    if (saved !== undefined && knob.kind === 'default') {
      const cleared = saved.original.minus(saved.written.at(-1) ?? saved.original);
      return { ...newEntry(knob, current.union(cleared)), written: current };
    }
    return inherited(knob, cpus, met) ?? newEntry(knob, current);
  }

  #isDue({ desired, written, target, original, retryAt }: Entry): boolean {
    if (desired === undefined || retryAt > this.#deps.now()) return false;
    if (written === undefined) return !desired.equals(original);
    return !desired.equals(target ?? written);
  }

  /** @param due entries that are about to be written */
  #save(due: readonly Entry[]): void {
    const planned = new Map(due.map((entry) => [entry.knob.key, entry.desired]));
    const knobs = [...this.#entries.values()].flatMap(({ knob: { key }, original, written }): SavedKnob[] => {
      const values = [written, planned.get(key)].filter((cpus) => cpus !== undefined);
      return values.length === 0 ? [] : [{ key, original, written: values }];
    });
    const { originals } = this.#deps;
    const away = originals.all.filter(({ key }) => isRpsKey(key) && !this.#entries.has(key));
    originals.save([...away.slice(-MAX_AWAY), ...knobs]);
  }

  #write(due: readonly Entry[], cpus: Cpus): number {
    this.#refill();
    const used = due.some(({ knob }) => knob.kind === 'irq') ? this.#vectors() : new Map<number, number>();
    let count = 0;
    this.#hasMore = false;
    for (const entry of due) {
      if (this.#writes < 1) {
        this.#hasMore = true;
        break;
      }
      this.#writes--;
      if (this.#set(entry, cpus, used)) count++;
    }
    return count;
  }

  #refill(): void {
    const now = this.#deps.now();
    const gained = Math.max(0, now - this.#writesAt) * WRITES_PER_SECOND;
    this.#writes = Math.min(WRITES_PER_SECOND, this.#writes + gained);
    this.#writesAt = now;
  }

  #set(entry: Entry, cpus: Cpus, used: Map<number, number>): boolean {
    const { knob, desired } = entry;
    if (desired === undefined) return false;
    const isRestored = desired.equals(entry.original);
    const anywhere = sharedCpus(cpus, undefined);
    const isBounded = knob.kind === 'irq' && !isRestored;
    const value = isBounded ? withVectors(desired, anywhere, used) : desired;
    const refused = refusalOf(knob, value);
    // A CPU may have no vector left, which others have.
    const isWidened = refused === NO_VECTOR && isBounded && !value.equals(anywhere);
    const error = isWidened ? attempt(knob, anywhere) : refused;
    if (error !== undefined) {
      entry.refused = error;
      entry.retryAt = this.#deps.now() + RETRY_SECONDS;
      this.#deps.metrics.interruptWrites.inc({ kind: knob.kind, outcome: entry.refused });
      return false;
    }
    const current = knob.read() ?? value;
    entry.knob = { ...knob, current };
    const accepted = isValue(entry.knob, value, cpus, false) ? value : current;
    entry.refused = undefined;
    entry.target = desired;
    entry.written = isRestored ? undefined : accepted;
    const [cpu] = current;
    if (knob.kind === 'irq' && cpu !== undefined) used.set(cpu, (used.get(cpu) ?? 0) + 1);
    this.#deps.metrics.interruptWrites.inc({ kind: knob.kind, outcome: 'written' });
    return true;
  }

  /** Interrupts by the CPU that handles them. */
  #vectors(): Map<number, number> {
    const used = new Map<number, number>();
    for (const { knob } of this.#entries.values()) {
      if (knob.kind !== 'irq') continue;
      for (const cpu of knob.effective() ?? []) used.set(cpu, (used.get(cpu) ?? 0) + 1);
    }
    return used;
  }

  /** Undefined for a knob that is as it was and may stay so. */
  #stateOf({ knob, original, written, desired, refused, foreignUntil }: Entry): MovedItem['state'] | undefined {
    if (foreignUntil > this.#deps.now()) return 'foreign';
    if (written !== undefined) {
      const effective = knob.effective();
      return effective === undefined || effective.isSubsetOf(written) ? 'moved' : 'pending';
    }
    if (desired?.equals(original) === true) return undefined;
    if (refused !== undefined) return isManagedError(knob.kind, refused) ? 'managed' : 'refused';
    if (!knob.isSettable()) return 'managed';
    return desired === undefined ? 'refused' : 'planned';
  }
}

/**
 * Whether a knob has a value. The CPUs of a thread are without those that are offline or in a partition, and return with
 * them. @param isChanging whether CPUs go or come at this moment
 */
function isValue({ kind, current }: Knob, value: CpuSet, { online, partitions }: Cpus, isChanging: boolean): boolean {
  if (kind !== 'kthread') return current.equals(value);
  return (
    current.equals(value) ||
    current.equals(value.intersect(online).minus(partitions)) ||
    (isChanging && current.isSubsetOf(value))
  );
}

/** Why nothing is written; undefined if it was. */
function refusalOf(knob: Knob, value: CpuSet): string | undefined {
  if (value.isEmpty) return NO_VECTOR;
  return knob.isSettable() ? attempt(knob, value) : 'EPERM';
}

/** @returns the code of the kernel's error */
function attempt(knob: Knob, value: CpuSet): string | undefined {
  try {
    knob.write(value);
    return undefined;
  } catch (error) {
    return errorCode(error);
  }
}

/** A new knob that has the value of its parent, and so the original of that. */
function inherited(knob: Knob, cpus: Cpus, met: ReadonlyMap<string, Entry>): Entry | undefined {
  const { written, original } = met.get(knob.inheritsFrom ?? '') ?? {};
  if (written === undefined || original === undefined || !isValue(knob, written, cpus, false)) return undefined;
  return { ...newEntry(knob, original), written };
}

function newEntry(knob: Knob, original: CpuSet): Entry {
  return {
    ...{ knob, original, written: undefined, target: undefined, desired: undefined, refused: undefined },
    ...{ retryAt: Number.NEGATIVE_INFINITY, displacedAt: Number.NEGATIVE_INFINITY, foreignUntil: 0 },
  };
}
