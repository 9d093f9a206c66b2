import { type HostPins, hostPins, type VmOnHost } from '../../model/cpu-mask/host-pins.ts';
import type { VcpuPin } from '../../model/cpu-mask/plan.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { type Affinity, EVERY_CPU } from '../../native/affinity.ts';
import { moveThreads, PinError, pinThreads, type ThreadPin } from '../../native/pin-threads.ts';
import { SyscallError } from '../../native/syscall-error.ts';
import type { GuestThread } from './guest.ts';
import type { PinnedScope } from './pins-file.ts';
import { keepOthers, leftText, openHousekeeping, type WholeVmParts } from './whole-vm.ts';

/** The state of a VM's mask. */
export interface MaskOutcome {
  readonly state: 'pinned' | 'unpinned' | 'refused';
  readonly reason?: string;
  readonly message?: string;
  /** Where threads belong, by thread id: vCPUs', and all others' with a mask for the whole VM. Empty unless pinned. */
  readonly wanted: ReadonlyMap<number, CpuSet>;
  readonly pins: readonly VcpuPin[];
  /** Threads whose CPUs were changed. */
  readonly moved: number;
}

/** Milliseconds that vCPU threads may be too few or too many: they appear one after the other. */
const SETTLE = 2000;
/** What the kernel takes is made of longs; whole ones need no copy on the way. */
const WORDS_PER_LONG = 2;

export interface MaskPinningParts extends Pick<WholeVmParts, 'tree'> {
  /** Of the guest's own threads, at this moment. */
  readonly affinity: () => Affinity;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** The cgroup of the container. */
  readonly path: string;
  /** What an agent before this one had put somewhere. */
  readonly heldBefore: PinnedScope | undefined;
  /** Called before threads are moved, and with undefined after they have been given back. */
  readonly remember: (held: PinnedScope | undefined) => void;
}

/**
 * Keeps the threads of one guest where its mask says: its vCPUs', and with a mask of a single entry all of them. The vCPUs
 * are pinned together or not at all.
 */
export function createMaskPinning({ affinity, tree, path, now, heldBefore, remember }: MaskPinningParts) {
  let held = heldBefore;
  let hasPinned = held !== undefined;
  /** Whether threads have been given back since they were pinned last. */
  let isReleased = false;
  let unsettledSince: number | undefined;

  const hold = (next: PinnedScope) => {
    held = next;
    isReleased = false;
    remember(next);
  };

  const isHeld = (thread: GuestThread) => held === 'vm' || isVcpu(thread);

  /**
   * Confines what was pinned to nothing but the container again. The first time that is every thread: one that was pinned to
   * all CPUs of its container is where it belongs now, and would stay there when the container is given more.
   */
  const giveBack = (threads: readonly GuestThread[], container: CpuSet): number => {
    if (held === 'vm') openHousekeeping(tree, path, container);
    const isEach = held !== undefined && !isReleased;
    const moves = threads.filter((thread) => isHeld(thread) && (isEach || !thread.allowed.equals(container)));
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
    // What an agent that kept no record pinned is somewhere else than the container's other threads.
    hasPinned ||= threads.some((thread) => isVcpu(thread) && !thread.allowed.equals(container));
    const state = hasPinned ? 'unpinned' : 'refused';
    const moved = hasPinned ? giveBack(threads, container) : 0;
    return { state, reason, message, wanted: new Map(), pins: [], moved };
  };

  /** Pins nothing, for example where `all` replaced the mask: threads that are elsewhere get the container's CPUs. */
  const unpin = (plan: Pins, threads: readonly GuestThread[], container: CpuSet): MaskOutcome => {
    const moved = giveBack(threads, container);
    const wanted = new Map(threads.filter(isHeld).map(({ tid }) => [tid, container]));
    return { state: 'pinned', ...remarkOn(plan), wanted, pins: [], moved };
  };

  const isUnsettled = (reason: string): boolean => {
    if (reason !== 'Threads') return false;
    unsettledSince ??= now();
    return now() - unsettledSince < SETTLE;
  };

  /**
   * @param pins one for each vCPU, in their order
   * @throws SyscallError, PinError with every thread where it was
   */
  const pinVcpus = (vcpus: readonly GuestThread[], pins: readonly VcpuPin[]) => {
    const wanted = new Map<number, CpuSet>();
    const moves: ThreadPin[] = [];
    const wordsOf = createWords();
    for (const thread of vcpus) {
      const cpus = pins[indexOf(thread)]?.cpus;
      if (cpus === undefined) continue;
      const { tid, allowed } = thread;
      wanted.set(tid, cpus);
      if (!allowed.equals(cpus)) moves.push({ tid, words: wordsOf(cpus), before: wordsOf(allowed) });
    }
    pinThreads(affinity(), moves);
    return { moved: moves.length, wanted };
  };

  const pinAll = (plan: Pins, threads: readonly GuestThread[], container: CpuSet): MaskOutcome => {
    const { pins, whole } = plan;
    const others = threads.filter((thread) => !isVcpu(thread));
    // The mask was for the whole VM before.
    if (held === 'vm' && whole === undefined) giveBack(others, container);
    hold(whole === undefined ? 'vcpus' : 'vm');
    const { moved, wanted } = pinVcpus(threads.filter(isVcpu), pins);
    hasPinned = true;
    if (whole === undefined) return { state: 'pinned', ...remarkOn(plan), wanted, pins, moved };
    const rest = keepOthers({ affinity: affinity(), tree }, path, others, whole);
    const left = new Set(rest.left);
    for (const thread of others) if (!left.has(thread)) wanted.set(thread.tid, whole);
    const message = leftText(rest.left);
    const partly = message === undefined ? {} : { reason: 'ThreadsLeft', message };
    return { state: 'pinned', ...partly, wanted, pins, moved: moved + rest.moved };
  };

  const pinOrGiveBack = (plan: Pins, threads: readonly GuestThread[], container: CpuSet): MaskOutcome => {
    try {
      return pinAll(plan, threads, container);
    } catch (error) {
      if (!(error instanceof SyscallError || error instanceof PinError)) throw error;
      return notPinned('System', systemMessage(error), threads, container);
    }
  };

  return {
    /**
     * One look: pins what is not in place, and reads it back. Where it cannot be, what this one pinned has the CPUs
     * of the whole container again.
     * @returns undefined while the guest is about to get its vCPU threads
     */
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

    /** The mask is gone: threads that it had put somewhere have the CPUs of the container again. */
    release(threads: readonly GuestThread[], container: CpuSet): number {
      const moved = held === undefined ? 0 : giveBack(threads, container);
      held = undefined;
      hasPinned = false;
      remember(undefined);
      return moved;
    },
  };
}

/** What the kernel takes, made once for each set: many threads share few. */
function createWords(): (cpus: CpuSet) => Uint32Array {
  const known = new Map<CpuSet, Uint32Array>();
  return (cpus) => {
    const words = known.get(cpus) ?? cpus.toWords(WORDS_PER_LONG);
    known.set(cpus, words);
    return words;
  };
}

type Pins = Extract<HostPins, { readonly kind: 'pin' }>;

const isVcpu = ({ role }: GuestThread) => role.kind === 'vcpu';
const indexOf = ({ role }: GuestThread) => (role.kind === 'vcpu' ? role.index : -1);

const NO_VCPUS = {
  reason: 'Threads',
  message: 'no vCPU threads were found: QEMU names them where it runs with debug-threads=on and a thread for each vCPU',
};

const FELL_BACK = {
  reason: 'FellBack',
  message: 'the host lacks CPUs of the CPU mask: "all" was taken for it, as plumbline.dev/fix-cpu-mismatch asks',
};

/** The problem of a mask that is applied, but not as written. */
function remarkOn({ fellBack, otherCount }: Pins) {
  if (fellBack) return FELL_BACK;
  return otherCount && { reason: 'OtherVCPUs', message: otherCount.message };
}

function systemMessage(error: SyscallError | PinError): string {
  return error instanceof PinError ? `${error.message} (it got ${CpuSet.fromWords(error.got)})` : error.message;
}
