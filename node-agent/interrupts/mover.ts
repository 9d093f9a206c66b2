import { nodeTarget } from '../../kube/events.ts';
import type { MovedItem } from '../../model/agent-status.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { Contention } from '../lifecycle/contention.ts';
import type { Services } from '../lifecycle/duty.ts';
import { isRpsKey, type Knob, type KnobKind } from './knobs.ts';
import { clearedCpus, type Originals, type SavedKnob } from './originals.ts';

/** The CPUs of the machine, as far as they decide where the kernel's work may run. */
export interface Cpus {
  readonly online: CpuSet;
  /** Owned by containers, or about to be. */
  readonly owned: CpuSet;
  /** CPUs without an owner that other work should leave alone: those of poll mode drivers, and of isolcpus. */
  readonly quiet: CpuSet;
  readonly cells: Host['cells'];
  /** CPUs of isolated cpuset partitions, which the kernel leaves out of kernel threads' CPUs. */
  readonly partitions: CpuSet;
}

const NONE = CpuSet.EMPTY;
export const NO_CPUS: Cpus = { online: NONE, owned: NONE, quiet: NONE, cells: [], partitions: NONE };

export interface MoverDeps extends Pick<Services, 'nodeName' | 'events' | 'metrics'> {
  /** Whether to move work; otherwise what an earlier agent moved is moved back. */
  readonly isMoving: boolean;
  readonly originals: Originals;
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
}

/** Seconds until a write that the kernel refused is tried again. */
const RETRY_SECONDS = 30;
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
  current: CpuSet;
  original: CpuSet;
  /** What the agent set, as read back; undefined while the knob has its original. */
  written?: CpuSet | undefined;
  /** For which value that was written: the kernel may accept a part. */
  target?: CpuSet | undefined;
  /** Undefined if no CPU is left, or another process has the knob. */
  desired?: CpuSet | undefined;
  /** The kernel's error of the last write. */
  refused?: string | undefined;
  /** Monotonic seconds. */
  retryAt?: number;
  /** Foreign writes. While it is contended, the knob is left to the other process. */
  contention?: Contention;
}

/**
 * Keeps work of the kernel off owned CPUs. Each value is computed from the saved original and the owners, never from the
 * current value, so that with fewer owners it widens again; without owners all originals are back.
 *
 * Owner: the duty. Age: the last `update`. End: an entry's with its knob.
 */
export class Mover {
  readonly #deps: MoverDeps;
  #cpus = NO_CPUS;
  #entries: ReadonlyMap<string, Entry> = new Map();

  constructor(deps: MoverDeps) {
    this.#deps = deps;
  }

  /**
   * Reads all knobs, and computes what they should have. @param leave kinds that another program manages: they get their
   * originals back @param isExpected whether values that others changed do not count as a foreign writer
   */
  update(knobs: readonly Knob[], cpus: Cpus, leave: ReadonlySet<KnobKind>, isExpected: boolean): void {
    this.#cpus = cpus;
    const entries = new Map<string, Entry>();
    for (const knob of knobs) {
      const current = knob.read();
      if (current === undefined) continue;
      const parent = entries.get(knob.inheritsFrom ?? '');
      const entry = this.#entryOf(knob, current, parent, isExpected);
      const desired = leave.has(knob.kind) ? entry.original : desiredCpus(knob, entry.original, cpus);
      entry.desired = this.#isForeign(entry) ? undefined : desired;
      entries.set(knob.key, entry);
    }
    this.#entries = entries;
  }

  /** @returns the number of values written */
  apply(): number {
    const due = this.#due();
    this.#save(new Set(due));
    // Without a saved original, a change could not be undone.
    if (this.#deps.originals.problem !== undefined) return 0;
    const written = due.filter((entry) => this.#set(entry));
    if (due.length > 0) this.#save(new Set());
    return written.length;
  }

  /** What is still on the CPUs, and could be moved in a moment: the kernel was busy. */
  staying(cpus: CpuSet): string[] {
    const busy = this.#due().filter(({ current, refused = '' }) => TRANSIENT.has(refused) && current.intersects(cpus));
    return busy.map(({ knob, refused }) => `${knob.name} (${refused})`);
  }

  /** What has been moved or should be. */
  items(): MovedItem[] {
    return [...this.#entries.values()].flatMap((entry) => {
      const state = this.#stateOf(entry);
      if (state === undefined) return [];
      const { knob, current, desired, refused = null } = entry;
      const cpus = { original: String(entry.original), desired: desired?.toString() ?? null, actual: String(current) };
      return [{ kind: knob.kind, name: knob.name, ...cpus, state, error: state === 'refused' ? refused : null }];
    });
  }

  #entryOf(knob: Knob, current: CpuSet, parent: Entry | undefined, isExpected: boolean): Entry {
    const before = this.#entries.get(knob.key);
    const isSame = before !== undefined && before.knob.instance === knob.instance;
    // Where the same number serves another request, what the driver set is the original.
    const own = before === undefined || isSame ? this.#deps.originals.value?.knobs.get(knob.key) : undefined;
    const entry = { ...(isSame ? before : {}), knob, current, original: current, written: undefined };
    const written = own?.written.find((value) => this.#hasValue(entry, value, isSame && isExpected));
    if (own !== undefined && written !== undefined) return { ...entry, original: own.original, written };
    // A new one with the value of its parent also has the original of that.
    if (!isSame && parent?.written !== undefined && this.#hasValue(entry, parent.written))
      return { ...entry, original: parent.original, written: parent.written };
    if (own === undefined) return entry;
    const isForeign = this.#deps.isMoving && isSame && !isExpected && current.intersects(this.#cpus.owned);
    const changed = { ...entry, target: undefined, ...(isForeign && this.#displaced(entry)) };
    // Only what the agent cleared is its own there: CRI-O and tuned change other bits.
    if (knob.kind === 'default') return { ...changed, original: current.union(clearedCpus(own)), written: current };
    return changed;
  }

  /** Counts a foreign write: after the second one, the knob is left to that process. */
  #displaced({ knob: { kind, name }, contention = new Contention(this.#deps.nowSeconds) }: Entry): Partial<Entry> {
    const { nodeName, events, metrics } = this.#deps;
    metrics.interruptsDisplaced.inc({ kind });
    contention.note(1);
    const message = `another process keeps moving ${kind} ${name} to owned CPUs; the agent leaves it alone for ten minutes`;
    if (contention.mode === 'contended')
      events.record(nodeTarget(nodeName), { type: 'Warning', reason: 'InterruptsContended', message });
    return { contention };
  }

  #isForeign({ contention }: Entry): boolean {
    return contention?.mode === 'contended';
  }

  #due(): Entry[] {
    const now = this.#deps.nowSeconds();
    return [...this.#entries.values()].filter(({ desired, written, target, original, retryAt = 0 }) => {
      return retryAt <= now && desired?.equals(target ?? written ?? original) === false;
    });
  }

  /** @param due entries that are about to be written */
  #save(due: ReadonlySet<Entry>): void {
    const { originals } = this.#deps;
    const saved = [...this.#entries.values()].flatMap((entry): SavedKnob[] => {
      const values = [entry.written, due.has(entry) ? entry.desired : undefined];
      const written = values.filter((cpus) => cpus !== undefined);
      return written.length === 0 ? [] : [{ key: entry.knob.key, original: entry.original, written }];
    });
    const before = [...(originals.value?.knobs.values() ?? [])];
    const away = before.filter(({ key }) => isRpsKey(key) && !this.#entries.has(key)).slice(-MAX_AWAY);
    originals.change({ knobs: new Map([...away, ...saved].map((knob) => [knob.key, knob])) });
  }

  /** @returns whether the kernel accepted it */
  #set(entry: Entry): boolean {
    const { knob, desired, original } = entry;
    if (desired === undefined) return false;
    const isRestored = desired.equals(original);
    const error = attempt(knob, desired);
    // The kernel puts an interrupt on the CPU with the most vectors left; other NUMA nodes may have some.
    const fallback = error === NO_VECTOR && !isRestored ? sharedCpus(this.#cpus, undefined) : undefined;
    const value = fallback ?? desired;
    entry.refused = fallback === undefined ? error : attempt(knob, fallback);
    this.#deps.metrics.interruptWrites.inc({ kind: knob.kind, outcome: entry.refused ?? 'written' });
    if (entry.refused !== undefined) {
      entry.retryAt = this.#deps.nowSeconds() + (TRANSIENT.has(entry.refused) ? 0 : RETRY_SECONDS);
      return false;
    }
    entry.current = knob.read() ?? value;
    const accepted = this.#hasValue(entry, value) ? value : entry.current;
    entry.written = isRestored ? undefined : accepted;
    entry.target = isRestored ? undefined : desired;
    return true;
  }

  /** Undefined for a knob that is as it was and may stay so. */
  #stateOf(entry: Entry): MovedItem['state'] | undefined {
    const { knob, original, written, desired, refused } = entry;
    if (this.#isForeign(entry)) return 'foreign';
    if (written !== undefined) return knob.effective?.()?.isSubsetOf(written) === false ? 'pending' : 'moved';
    if (desired?.equals(original) === true) return undefined;
    if (knob.isManaged || (knob.kind === 'irq' && MANAGED.has(refused ?? ''))) return 'managed';
    return refused !== undefined || desired === undefined ? 'refused' : 'planned';
  }

  /**
   * Whether a knob has a value. The CPUs of a thread are without those that are offline or in a partition, and return
   * with them. @param isChanging whether CPUs go or come at this moment
   */
  #hasValue({ knob, current }: Pick<Entry, 'knob' | 'current'>, value: CpuSet, isChanging = false): boolean {
    if (current.equals(value)) return true;
    if (knob.kind !== 'kthread') return false;
    const { online, partitions } = this.#cpus;
    return current.equals(value.intersect(online).minus(partitions)) || (isChanging && current.isSubsetOf(value));
  }
}

/** The nearest CPUs without an owner: those of the NUMA node, else of all. Empty if every CPU has an owner. */
export function sharedCpus({ online, owned, quiet, cells }: Cpus, cell: number | undefined): CpuSet {
  const free = online.minus(owned);
  const shared = free.minus(quiet).isEmpty ? free : free.minus(quiet);
  const near = cells.find(({ id }) => id === cell)?.cpus.intersect(shared);
  return near === undefined || near.isEmpty ? shared : near;
}

/**
 * The value of a knob, from its original and the owners alone, so that it widens again with each release. Undefined if
 * no CPU is left: the kernel's work must run somewhere.
 */
function desiredCpus({ cell, isOfVm }: Knob, original: CpuSet, cpus: Cpus): CpuSet | undefined {
  if (cpus.owned.isEmpty) return original;
  const rest = original.minus(cpus.owned);
  if (!isOfVm && (rest.equals(original) || rest.intersects(cpus.online))) return rest;
  const shared = sharedCpus(cpus, cell);
  return shared.isEmpty ? undefined : shared;
}

/** @returns the code of the kernel's error, or why nothing was written */
function attempt(knob: Knob, value: CpuSet): string | undefined {
  if (knob.isManaged) return 'EPERM';
  try {
    knob.write(value);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unknown';
  }
}
