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

/** Milliseconds in which the number of vCPU threads may be wrong: they appear one after the other. */
const STARTING_MILLISECONDS = 2000;
/** The kernel's masks consist of longs; masks of whole longs need no copy. */
const WORDS_PER_LONG = 2;

export interface MaskPinningParts extends HousekeepingParts {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly path: string;
  /** The threads that an earlier agent had pinned. */
  readonly scopeBefore: PinnedScope | undefined;
  /** Called before threads are moved, and with undefined after they have been moved back. */
  readonly remember: (scope: PinnedScope | undefined) => void;
}

const isVcpu = ({ role }: GuestThread) => role.kind === 'vcpu';

const indexOf = ({ role }: GuestThread) => (role.kind === 'vcpu' ? role.index : -1);

const NO_VCPUS = {
  reason: 'Threads',
  message: 'no vCPU threads were found: QEMU names them where it runs with debug-threads=on and a thread for each vCPU',
};

/** Pins all vCPUs or none, and all other threads if the mask has a single entry. */
export function createMaskPinning({ affinity, tree, path, now, scopeBefore, remember }: MaskPinningParts) {
  let scope = scopeBefore;
  let hasPinned = scope !== undefined;
  /** Whether threads have been moved back since they were last pinned. */
  let isReleased = false;
  let unsettledSince: number | undefined;

  const hold = (next: PinnedScope) => {
    scope = next;
    isReleased = false;
    remember(next);
  };

  const isInScope = (thread: GuestThread) => scope === 'vm' || isVcpu(thread);

  /** The first time for every thread: one pinned to all CPUs of its container would stay there when it gets more. */
  const giveBack = (threads: readonly GuestThread[], container: CpuSet): number => {
    if (scope === 'vm') openHousekeeping(tree, path, container);
    const isEach = scope !== undefined && !isReleased;
    const moves = threads.filter((thread) => isInScope(thread) && (isEach || !thread.allowed.equals(container)));
    isReleased = true;
    const tids = moves.map(({ tid }) => tid);
    return moveThreads(affinity(), tids, EVERY_CPU).there.length;
  };

  const notPinned = (
    reason: string,
    message: string,
    threads: readonly GuestThread[],
    container: CpuSet,
  ): MaskOutcome => {
    // An agent without a record pinned the threads whose CPUs differ from the container's.
    hasPinned ||= threads.some((thread) => isVcpu(thread) && !thread.allowed.equals(container));
    const state = hasPinned ? 'unpinned' : 'refused';
    const moved = hasPinned ? giveBack(threads, container) : 0;
    return { state, reason, message, targets: new Map(), pins: [], moved };
  };

  /** Pins nothing, for example if `all` replaced the mask: threads elsewhere get the CPUs of the container. */
  const unpin = (plan: Pins, threads: readonly GuestThread[], container: CpuSet): MaskOutcome => {
    const moved = giveBack(threads, container);
    const targets = new Map(threads.filter(isInScope).map(({ tid }) => [tid, container]));
    return { state: 'pinned', ...remarkOn(plan), targets, pins: [], moved };
  };

  const isUnsettled = (reason: string): boolean => {
    if (reason !== 'Threads') return false;
    unsettledSince ??= now();
    return now() - unsettledSince < STARTING_MILLISECONDS;
  };

  const pinVcpus = (vcpus: readonly GuestThread[], pins: readonly VcpuPin[]) => {
    const targets = new Map<number, CpuSet>();
    const moves: ThreadPin[] = [];
    const wordsOf = createWords();
    for (const thread of vcpus) {
      const cpus = pins[indexOf(thread)]?.cpus;
      if (cpus === undefined) continue;
      const { tid, allowed } = thread;
      targets.set(tid, cpus);
      if (!allowed.equals(cpus)) moves.push({ tid, words: wordsOf(cpus), before: wordsOf(allowed) });
    }
    pinThreads(affinity(), moves);
    return { moved: moves.length, targets };
  };

  const pinAll = (plan: Pins, threads: readonly GuestThread[], container: CpuSet): MaskOutcome => {
    const { pins, whole } = plan;
    const others = threads.filter((thread) => !isVcpu(thread));
    // The previous mask was for the whole VM.
    if (scope === 'vm' && whole === undefined) giveBack(others, container);
    hold(whole === undefined ? 'vcpus' : 'vm');
    const { moved, targets } = pinVcpus(threads.filter(isVcpu), pins);
    hasPinned = true;
    if (whole === undefined) return { state: 'pinned', ...remarkOn(plan), targets, pins, moved };
    const rest = keepOthers({ affinity, tree }, path, others, whole);
    const left = new Set(rest.left);
    for (const thread of others) if (!left.has(thread)) targets.set(thread.tid, whole);
    const message = leftText(rest.left);
    const partly = message === undefined ? {} : { reason: 'ThreadsLeft', message };
    return { state: 'pinned', ...partly, targets, pins, moved: moved + rest.moved };
  };

  const pinOrGiveBack = (plan: Pins, threads: readonly GuestThread[], container: CpuSet): MaskOutcome => {
    try {
      return pinAll(plan, threads, container);
    } catch (error) {
      if (!(error instanceof SyscallError || error instanceof PinError)) throw error;
      const got = error instanceof PinError ? ` (it got ${CpuSet.fromWords(error.got)})` : '';
      return notPinned('System', error.message + got, threads, container);
    }
  };

  return {
    /** Pins and verifies; a failure moves all back. @returns undefined while the guest gets its vCPU threads */
    keep(vm: Omit<VmOnHost, 'indexes'>, threads: readonly GuestThread[]): MaskOutcome | undefined {
      const indexes = threads.filter(isVcpu).map(indexOf);
      const plan = hostPins({ ...vm, indexes });
      if (plan.kind === 'refused' || indexes.length === 0) {
        const { reason, message } = plan.kind === 'refused' ? plan : NO_VCPUS;
        return isUnsettled(reason) ? undefined : notPinned(reason, message, threads, vm.container);
      }
      const { otherCount } = plan;
      if (otherCount?.waits === true && isUnsettled('Threads')) return undefined;
      if (otherCount?.waits !== true) unsettledSince = undefined;
      if (plan.pins.length === 0) return unpin(plan, threads, vm.container);
      return pinOrGiveBack(plan, threads, vm.container);
    },

    /** The mask was removed: moves the threads that it had moved back to the CPUs of the container. */
    release(threads: readonly GuestThread[], container: CpuSet): number {
      const moved = scope === undefined ? 0 : giveBack(threads, container);
      scope = undefined;
      hasPinned = false;
      remember(undefined);
      return moved;
    },
  };
}

/** Creates the kernel's form of each set once: many threads share few sets. */
function createWords(): (cpus: CpuSet) => Uint32Array {
  const wordsByCpus = new Map<CpuSet, Uint32Array>();
  return (cpus) => {
    const words = wordsByCpus.get(cpus) ?? cpus.toWords(WORDS_PER_LONG);
    wordsByCpus.set(cpus, words);
    return words;
  };
}

type Pins = Extract<HostPins, { readonly kind: 'pin' }>;

const FELL_BACK = {
  reason: 'FellBack',
  message: 'the host lacks CPUs of the CPU mask; using "all" instead, as plumbline.dev/fix-cpu-mismatch requests',
};

/** The problem of a mask that is applied, but not as written. */
function remarkOn({ fellBack, otherCount }: Pins) {
  if (fellBack) return FELL_BACK;
  return otherCount && { reason: 'OtherVCPUs', message: otherCount.message };
}
