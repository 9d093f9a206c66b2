import type { MovedItem } from '../../model/agent-status.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { type Cpus, desiredCpus, sharedCpus } from './desired.ts';
import { errorCode, isRpsKey, type Knob, type KnobKind } from './knobs.ts';
import type { Originals, SavedKnob } from './originals.ts';

export interface MoverDeps {
  readonly originals: Originals;
  readonly metrics: AgentMetrics;
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
  /** Called when another process keeps setting a knob. */
  readonly onForeign: (knob: Knob) => void;
}

/** Seconds until a write that the kernel refused is tried again. */
const RETRY_SECONDS = 30;
/** Seconds within which a second foreign write means that another process owns the knob. */
const REPEAT_SECONDS = 60;
/** Seconds for which a knob is left to that process. */
const HANDS_OFF_SECONDS = 600;
const NO_VECTOR = 'ENOSPC';
/** Queues of interfaces that have left, such as for a pod, and may return with the mask that the agent wrote. */
const MAX_AWAY = 256;
/** Errors that pass: each pass tries again. */
const TRANSIENT: ReadonlySet<string> = new Set(['EBUSY', 'EAGAIN', 'ENOMEM', 'EINTR']);
/** Errors by which kernels say that an interrupt's mask is theirs: EIO before Linux 6.11, then EPERM. */
const MANAGED: ReadonlySet<string> = new Set(['EPERM', 'EIO']);

/** What is known about one knob. Owner: the mover. Age: the last pass. End: when the knob is gone. */
interface Entry {
  knob: Knob;
  original: CpuSet;
  /** What the agent set, as read back; undefined while the knob has its original. */
  written?: CpuSet | undefined;
  /** For which value that was written: the kernel may accept a part. */
  target?: CpuSet | undefined;
  /** Undefined if no CPU is left, or another process has the knob. */
  desired?: CpuSet | undefined;
  /** The kernel's error of the last write. */
  refused?: string | undefined;
  /** Monotonic seconds: when to try again, the last foreign write, and until when another process has the knob. */
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

  constructor(deps: MoverDeps) {
    this.#deps = deps;
  }

  /** @returns the number of values written */
  pass(knobs: readonly Knob[], cpus: Cpus, { leave, isExpected, isDryRun }: PassOptions): number {
    const entries = new Map<string, Entry>();
    for (const knob of knobs) entries.set(knob.key, this.#entryOf(knob, cpus, isExpected, entries));
    this.#entries = entries;
    for (const entry of entries.values()) {
      const { knob, original } = entry;
      const value = leave.has(knob.kind) ? original : desiredCpus(knob, original, cpus);
      entry.desired = this.#isForeign(entry) ? undefined : value;
    }
    if (isDryRun) return 0;
    const due = [...entries.values()].filter((entry) => this.#isDue(entry));
    this.#save(due);
    // Without a saved original, a change could not be undone.
    if (this.#deps.originals.problem !== undefined) return 0;
    const written = due.filter((entry) => this.#set(entry, cpus));
    if (due.length > 0) this.#save([]);
    return written.length;
  }

  /** What is still on the CPUs, and could be moved in a moment: the kernel was busy. */
  staying(cpus: CpuSet): string[] {
    const due = [...this.#entries.values()].filter((entry) => this.#isDue(entry));
    const here = due.filter(({ knob, refused = '' }) => TRANSIENT.has(refused) && knob.current.intersects(cpus));
    return here.map(({ knob, refused }) => `${knob.name} (${refused})`);
  }

  /** What has been moved or should be, by kind and name. */
  items(): MovedItem[] {
    return [...this.#entries.values()].flatMap((entry) => {
      const state = this.#stateOf(entry);
      if (state === undefined) return [];
      const { knob, original, desired, refused } = entry;
      const { kind, name, current } = knob;
      const texts = { original: original.toString(), desired: desired?.toString() ?? null, actual: current.toString() };
      return [{ kind, name, ...texts, state, error: state === 'refused' ? (refused ?? null) : null }];
    });
  }

  #isForeign({ foreignUntil }: Entry): boolean {
    return foreignUntil > this.#deps.nowSeconds();
  }

  #entryOf(knob: Knob, cpus: Cpus, isExpected: boolean, parents: ReadonlyMap<string, Entry>): Entry {
    const entry = this.#entries.get(knob.key);
    const { current, kind } = knob;
    if (entry === undefined) return this.#first(knob, cpus, parents);
    // The same number serves another request: what the driver set is the original.
    if (entry.knob.instance !== knob.instance) return inherited(knob, cpus, parents);
    entry.knob = knob;
    if (entry.written === undefined) {
      entry.original = current;
      return entry;
    }
    if (isValue(knob, entry.written, cpus, isExpected)) return entry;
    const isDefault = kind === 'default';
    // Only what the agent cleared is its own there: CRI-O and tuned change other bits.
    entry.original = isDefault ? current.union(entry.original.minus(entry.written)) : current;
    entry.written = isDefault ? current : undefined;
    entry.target = undefined;
    if (!isExpected && current.intersects(cpus.owned)) this.#displaced(entry);
    return entry;
  }

  #displaced(entry: Entry): void {
    const { metrics, nowSeconds, onForeign } = this.#deps;
    metrics.interruptsDisplaced.inc({ kind: entry.knob.kind });
    if (nowSeconds() - entry.displacedAt <= REPEAT_SECONDS) {
      entry.foreignUntil = nowSeconds() + HANDS_OFF_SECONDS;
      onForeign(entry.knob);
    }
    entry.displacedAt = nowSeconds();
  }

  /** A knob that this agent has not seen: an earlier one may have set it. */
  #first(knob: Knob, cpus: Cpus, parents: ReadonlyMap<string, Entry>): Entry {
    const { current, kind, key } = knob;
    const saved = this.#deps.originals.value?.knobs.get(key);
    const written = saved?.written.find((value) => isValue(knob, value, cpus, false));
    if (saved !== undefined && written !== undefined) return { ...newEntry(knob, saved.original), written };
    if (saved !== undefined && kind === 'default') {
      const cleared = saved.original.minus(saved.written.at(-1) ?? saved.original);
      return { ...newEntry(knob, current.union(cleared)), written: current };
    }
    return inherited(knob, cpus, parents);
  }

  #isDue({ desired, written, target, original, retryAt }: Entry): boolean {
    if (desired === undefined || retryAt > this.#deps.nowSeconds()) return false;
    return !desired.equals(target ?? written ?? original);
  }

  /** @param due entries that are about to be written */
  #save(due: readonly Entry[]): void {
    const planned = new Map(due.map((entry) => [entry.knob.key, entry.desired]));
    const saved = [...this.#entries.values()].flatMap(({ knob: { key }, original, written }): [string, SavedKnob][] => {
      const values = [written, planned.get(key)].filter((cpus) => cpus !== undefined);
      return values.length === 0 ? [] : [[key, { key, original, written: values }]];
    });
    const { originals } = this.#deps;
    const away = [...(originals.value?.knobs ?? [])].filter(([key]) => isRpsKey(key) && !this.#entries.has(key));
    originals.change({ knobs: new Map([...away.slice(-MAX_AWAY), ...saved]) });
  }

  /** @returns whether the kernel accepted it */
  #set(entry: Entry, cpus: Cpus): boolean {
    const { knob, desired, original } = entry;
    if (desired === undefined) return false;
    const isRestored = desired.equals(original);
    let value = desired;
    let error = attempt(knob, value);
    // The kernel puts an interrupt on the CPU with the most vectors left; other NUMA nodes may have some.
    if (error === NO_VECTOR && !isRestored) {
      value = sharedCpus(cpus, undefined);
      error = attempt(knob, value);
    }
    entry.refused = error;
    this.#deps.metrics.interruptWrites.inc({ kind: knob.kind, outcome: error ?? 'written' });
    if (error !== undefined) {
      entry.retryAt = this.#deps.nowSeconds() + (TRANSIENT.has(error) ? 0 : RETRY_SECONDS);
      return false;
    }
    entry.knob = { ...knob, current: knob.read() ?? value };
    const accepted = isValue(entry.knob, value, cpus, false) ? value : entry.knob.current;
    entry.written = isRestored ? undefined : accepted;
    entry.target = isRestored ? undefined : desired;
    return true;
  }

  /** Undefined for a knob that is as it was and may stay so. */
  #stateOf(entry: Entry): MovedItem['state'] | undefined {
    const { knob, original, written, desired, refused } = entry;
    if (this.#isForeign(entry)) return 'foreign';
    if (written !== undefined) {
      const effective = knob.effective();
      return effective === undefined || effective.isSubsetOf(written) ? 'moved' : 'pending';
    }
    if (desired?.equals(original) === true) return undefined;
    const isManaged = knob.kind === 'irq' && MANAGED.has(refused ?? '');
    if (isManaged || !knob.isSettable()) return 'managed';
    return refused !== undefined || desired === undefined ? 'refused' : 'planned';
  }
}

/**
 * Whether a knob has a value. The CPUs of a thread are without those that are offline or in a partition, and return with
 * them. @param isChanging whether CPUs go or come at this moment
 */
function isValue({ kind, current }: Knob, value: CpuSet, { online, partitions }: Cpus, isChanging: boolean): boolean {
  if (current.equals(value)) return true;
  if (kind !== 'kthread') return false;
  return current.equals(value.intersect(online).minus(partitions)) || (isChanging && current.isSubsetOf(value));
}

/** @returns the code of the kernel's error, or why nothing was written */
function attempt(knob: Knob, value: CpuSet): string | undefined {
  if (!knob.isSettable()) return 'EPERM';
  try {
    knob.write(value);
    return undefined;
  } catch (error) {
    return errorCode(error);
  }
}

/** A new knob. With the value of its parent it also has the original of that. */
function inherited(knob: Knob, cpus: Cpus, parents: ReadonlyMap<string, Entry>): Entry {
  const parent = parents.get(knob.inheritsFrom ?? '');
  if (parent?.written === undefined || !isValue(knob, parent.written, cpus, false)) return newEntry(knob, knob.current);
  return { ...newEntry(knob, parent.original), written: parent.written };
}

function newEntry(knob: Knob, original: CpuSet): Entry {
  const never = Number.NEGATIVE_INFINITY;
  return { knob, original, retryAt: never, displacedAt: never, foreignUntil: never };
}
