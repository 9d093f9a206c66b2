import { type HostPins, hostPins, type VcpuPin, type VmOnHost } from '../../model/cpu-mask/host-pins.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { EVERY_CPU, SyscallError } from '../../native/affinity.ts';
import { moveThreads, PinError, pinThreads, type ThreadPin } from '../../native/pin-threads.ts';
import type { GuestThread } from './guest.ts';
import { type HousekeepingParts, keepOthers, leftText, openHousekeeping } from './housekeeping.ts';
import type { PinnedScope } from './pins-file.ts';

export interface MaskOutcome {
  readonly state: 'pinned' | 'unpinned' | 'refused';
  readonly reason?: string;
  readonly message?: string;
  /** The CPUs of threads by id: of vCPUs, and with a mask for the whole VM of all others. Empty unless pinned. */
  readonly targets: ReadonlyMap<number, CpuSet>;
  readonly pins: readonly VcpuPin[];
  readonly moved: number;
}

/** Seconds in which the number of vCPU threads may be wrong: they appear one after the other. */
const STARTING_SECONDS = 2;
/** The kernel's masks consist of longs; masks of whole longs need no copy. */
const WORDS_PER_LONG = 2;

export interface MaskPinningParts extends HousekeepingParts {
  /** Monotonic. */
  readonly nowSeconds: () => number;
  readonly path: string;
  /** The threads that an earlier agent had pinned. */
  readonly scopeBefore: PinnedScope | undefined;
  /** Called before threads are moved, and with undefined after they have been moved back. */
  readonly saveScope: (scope: PinnedScope | undefined) => void;
}

const isVcpu = ({ role }: GuestThread) => role.kind === 'vcpu';

const indexOf = ({ role }: GuestThread) => (role.kind === 'vcpu' ? role.index : -1);

interface Problem {
  readonly reason: string;
  readonly message: string;
}

const NO_VCPUS: Problem = {
  reason: 'Threads',
  message: 'no vCPU threads were found: QEMU names them where it runs with debug-threads=on and a thread for each vCPU',
};

/**
 * Pins all vCPUs of one guest or none, and all other threads if the mask has a single entry.
 *
 * Owner: the mask of the launcher. Age: `scope` is what this agent, or an earlier one of this boot, has moved. End: when
 * the mask is removed, and with the guest.
 */
export class MaskPinning {
  readonly #parts: MaskPinningParts;
  #scope: PinnedScope | undefined;
  #hasPinned: boolean;
  /** Whether threads have been moved back since they were last pinned. */
  #isReleased = false;
  /** Monotonic seconds; undefined while the number of vCPU threads is right. */
  #unsettledSince: number | undefined;

  constructor(parts: MaskPinningParts) {
    this.#parts = parts;
    this.#scope = parts.scopeBefore;
    this.#hasPinned = this.#scope !== undefined;
  }

  /** Pins and verifies; a failure moves all back. @returns undefined while the guest gets its vCPU threads */
  keep(vm: Omit<VmOnHost, 'indexes'>, threads: readonly GuestThread[]): MaskOutcome | undefined {
    const indexes = threads.filter(isVcpu).map(indexOf);
    const plan = hostPins({ ...vm, indexes });
    if (plan.kind === 'refused' || indexes.length === 0) {
      const { reason, message } = plan.kind === 'refused' ? plan : NO_VCPUS;
      if (reason === 'Threads' && this.#isUnsettled()) return undefined;
      return this.#notPinned({ reason, message }, threads, vm.container);
    }
    const { otherCount } = plan;
    if (otherCount?.waits === true && this.#isUnsettled()) return undefined;
    if (otherCount?.waits !== true) this.#unsettledSince = undefined;
    if (plan.pins.length === 0) return this.#unpin(plan, threads, vm.container);
    try {
      return this.#pinAll(plan, threads, vm.container);
    } catch (error) {
      if (!(error instanceof SyscallError || error instanceof PinError)) throw error;
      const got = error instanceof PinError ? ` (it got ${CpuSet.fromWords(error.got)})` : '';
      return this.#notPinned({ reason: 'System', message: error.message + got }, threads, vm.container);
    }
  }

  /** The mask was removed: moves the threads that it had moved back to the CPUs of the container. */
  release(threads: readonly GuestThread[], container: CpuSet): number {
    const moved = this.#scope === undefined ? 0 : this.#giveBack(threads, container);
    this.#scope = undefined;
    this.#hasPinned = false;
    this.#parts.saveScope(undefined);
    return moved;
  }

  #isUnsettled(): boolean {
    const now = this.#parts.nowSeconds();
    this.#unsettledSince ??= now;
    return now - this.#unsettledSince < STARTING_SECONDS;
  }

  #isInScope(thread: GuestThread): boolean {
    return this.#scope === 'vm' || isVcpu(thread);
  }

  /** The first time for every thread: one pinned to all CPUs of its container would stay there when it gets more. */
  #giveBack(threads: readonly GuestThread[], container: CpuSet): number {
    const { tree, path, affinity } = this.#parts;
    if (this.#scope === 'vm') openHousekeeping(tree, path, container);
    const isEach = this.#scope !== undefined && !this.#isReleased;
    const moves = threads.filter((thread) => this.#isInScope(thread) && (isEach || !thread.allowed.equals(container)));
    this.#isReleased = true;
    const tids = moves.map(({ tid }) => tid);
    return moveThreads(affinity(), tids, EVERY_CPU).there.length;
  }

  #notPinned(problem: Problem, threads: readonly GuestThread[], container: CpuSet): MaskOutcome {
    // An agent without a record pinned the threads whose CPUs differ from the container's.
    this.#hasPinned ||= threads.some((thread) => isVcpu(thread) && !thread.allowed.equals(container));
    const state = this.#hasPinned ? 'unpinned' : 'refused';
    const moved = this.#hasPinned ? this.#giveBack(threads, container) : 0;
    return { state, ...problem, targets: new Map(), pins: [], moved };
  }

  /** Pins nothing, for example if `all` replaced the mask: threads elsewhere get the CPUs of the container. */
  #unpin(plan: Pins, threads: readonly GuestThread[], container: CpuSet): MaskOutcome {
    const moved = this.#giveBack(threads, container);
    const inScope = threads.filter((thread) => this.#isInScope(thread));
    const targets = new Map(inScope.map(({ tid }) => [tid, container]));
    return { state: 'pinned', ...remarkOn(plan), targets, pins: [], moved };
  }

  #pinAll(plan: Pins, threads: readonly GuestThread[], container: CpuSet): MaskOutcome {
    const { pins, whole } = plan;
    const others = threads.filter((thread) => !isVcpu(thread));
    // The previous mask was for the whole VM.
    if (this.#scope === 'vm' && whole === undefined) this.#giveBack(others, container);
    this.#scope = whole === undefined ? 'vcpus' : 'vm';
    this.#isReleased = false;
    this.#parts.saveScope(this.#scope);
    const { moved, targets } = this.#pinVcpus(threads.filter(isVcpu), pins);
    this.#hasPinned = true;
    if (whole === undefined) return { state: 'pinned', ...remarkOn(plan), targets, pins, moved };
    const rest = keepOthers(this.#parts, this.#parts.path, others, whole);
    const left = new Set(rest.left);
    for (const thread of others) if (!left.has(thread)) targets.set(thread.tid, whole);
    const message = leftText(rest.left);
    const partly = message === undefined ? {} : { reason: 'ThreadsLeft', message };
    return { state: 'pinned', ...partly, targets, pins, moved: moved + rest.moved };
  }

  #pinVcpus(vcpus: readonly GuestThread[], pins: readonly VcpuPin[]) {
    const targets = new Map<number, CpuSet>();
    const moves: ThreadPin[] = [];
    /** The kernel's form of each set, created once: many threads share few sets. */
    const wordsByCpus = new Map<CpuSet, Uint32Array>();
    const wordsOf = (cpus: CpuSet): Uint32Array => {
      const words = wordsByCpus.get(cpus) ?? cpus.toWords(WORDS_PER_LONG);
      wordsByCpus.set(cpus, words);
      return words;
    };
    for (const thread of vcpus) {
      const { tid, allowed } = thread;
      const cpus = pins[indexOf(thread)]?.cpus;
      if (cpus === undefined) continue;
      targets.set(tid, cpus);
      if (!allowed.equals(cpus)) moves.push({ tid, words: wordsOf(cpus), before: wordsOf(allowed) });
    }
    pinThreads(this.#parts.affinity(), moves);
    return { moved: moves.length, targets };
  }
}

type Pins = Extract<HostPins, { readonly kind: 'pin' }>;

const FELL_BACK: Problem = {
  reason: 'FellBack',
  message: 'the host lacks CPUs of the CPU mask; using "all" instead, as plumbline.dev/fix-cpu-mismatch requests',
};

/** The problem of a mask that is applied, but not as written. */
function remarkOn({ fellBack, otherCount }: Pins) {
  if (fellBack) return FELL_BACK;
  return otherCount && { reason: 'OtherVCPUs', message: otherCount.message };
}
