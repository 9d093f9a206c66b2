import { type HostPins, hostPins, type VmOnHost } from '../../model/cpu-mask/host-pins.ts';
import type { VcpuPin } from '../../model/cpu-mask/plan.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { Affinity } from '../../native/affinity.ts';
import { PinError, pinThreads } from '../../native/pin-threads.ts';
import { SyscallError } from '../../native/syscall-error.ts';
import type { GuestThread } from './guest.ts';

/** What became of a VM's mask. */
export interface MaskOutcome {
  readonly state: 'pinned' | 'unpinned' | 'refused';
  readonly reason?: string;
  readonly message?: string;
  /** Where vCPU threads belong, by thread id; empty unless pinned. */
  readonly wanted: ReadonlyMap<number, CpuSet>;
  readonly pins: readonly VcpuPin[];
  /** Threads whose CPUs were changed. */
  readonly moved: number;
}

/** Milliseconds that vCPU threads may be too few or too many: they appear one after the other. */
const SETTLE = 2000;
/** What the kernel takes is made of longs; whole ones need no copy on the way. */
const WORDS_PER_LONG = 2;

export interface MaskKeeperParts {
  readonly affinity: Affinity;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** Keeps the vCPU threads of one guest where its mask says. It is pinned as a whole or not at all. */
export function createMaskKeeper({ affinity, now }: MaskKeeperParts) {
  let hasPinned = false;
  let unsettledSince: number | undefined;

  const giveBack = (vcpus: readonly GuestThread[], container: CpuSet): number => {
    const moves = vcpus.filter(({ allowed }) => !allowed.equals(container));
    return moves.filter(({ tid }) => tryTo(() => affinity.set(tid, container.toWords(WORDS_PER_LONG)))).length;
  };

  const notPinned = (
    reason: string,
    message: string,
    vcpus: readonly GuestThread[],
    container: CpuSet,
  ): MaskOutcome => {
    // What an agent before this one pinned is somewhere else than the container's other threads.
    hasPinned ||= vcpus.some(({ allowed }) => !allowed.equals(container));
    const state = hasPinned ? 'unpinned' : 'refused';
    const moved = hasPinned ? giveBack(vcpus, container) : 0;
    return { state, reason, message, wanted: new Map(), pins: [], moved };
  };

  const isUnsettled = (reason: string): boolean => {
    if (reason !== 'Threads') return false;
    unsettledSince ??= now();
    return now() - unsettledSince < SETTLE;
  };

  return {
    /**
     * One look: pins what is not in place, and reads it back. Where it cannot be, what this keeper pinned has the CPUs
     * of the whole container again.
     * @returns undefined while the guest is about to get its vCPU threads
     */
    keep(vm: Omit<VmOnHost, 'indexes'>, threads: readonly GuestThread[]): MaskOutcome | undefined {
      const vcpus = threads.filter(({ role }) => role.kind === 'vcpu');
      const indexes = vcpus.map(({ role }) => (role.kind === 'vcpu' ? role.index : -1));
      const plan = hostPins({ ...vm, indexes });
      if (plan.kind === 'refused' || vcpus.length === 0) {
        const { reason, message } = plan.kind === 'refused' ? plan : NO_VCPUS;
        return isUnsettled(reason) ? undefined : notPinned(reason, message, vcpus, vm.container);
      }
      const { otherCount } = plan;
      if (otherCount?.waits === true && isUnsettled('Threads')) return undefined;
      if (otherCount?.waits !== true) unsettledSince = undefined;
      const byIndex = new Map(plan.pins.map((pin) => [pin.vcpu, pin.cpus]));
      const places = vcpus.flatMap((thread, i) => {
        const cpus = byIndex.get(indexes[i] ?? -1);
        return cpus === undefined ? [] : [{ thread, cpus }];
      });
      const moves = places.filter(({ thread, cpus }) => !thread.allowed.equals(cpus));
      try {
        pinThreads(
          affinity,
          moves.map(({ thread: { tid, allowed }, cpus }) => {
            return { tid, words: cpus.toWords(WORDS_PER_LONG), before: allowed.toWords(WORDS_PER_LONG) };
          }),
        );
      } catch (error) {
        if (!(error instanceof SyscallError || error instanceof PinError)) throw error;
        return notPinned('System', systemMessage(error), vcpus, vm.container);
      }
      hasPinned = true;
      const wanted = new Map(places.map(({ thread, cpus }) => [thread.tid, cpus]));
      return { state: 'pinned', ...remarkOn(plan), wanted, pins: plan.pins, moved: moves.length };
    },

    /** The mask is gone: vCPU threads that this keeper pinned have the CPUs of the container again. */
    release(threads: readonly GuestThread[], container: CpuSet): number {
      if (!hasPinned) return 0;
      hasPinned = false;
      return giveBack(
        threads.filter(({ role }) => role.kind === 'vcpu'),
        container,
      );
    },
  };
}

const NO_VCPUS = {
  reason: 'Threads',
  message: 'no vCPU threads were found: QEMU names them where it runs with debug-threads=on and a thread for each vCPU',
};

const FELL_BACK = {
  reason: 'FellBack',
  message: 'the host lacks CPUs of the CPU mask: "all" was taken for it, as plumbline.dev/fix-cpu-mismatch asks',
};

/** What is to be said of a mask that is applied, but not as it was written. */
function remarkOn({ fellBack, otherCount }: Extract<HostPins, { kind: 'pin' }>) {
  if (fellBack) return FELL_BACK;
  return otherCount && { reason: 'OtherVCPUs', message: otherCount.message };
}

function systemMessage(error: SyscallError | PinError): string {
  return error instanceof PinError ? `${error.message} (it got ${CpuSet.fromWords(error.got)})` : error.message;
}

/** @returns whether it was done; a thread that ended, or that the kernel refuses to move, is passed over */
function tryTo(call: () => void): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if (error instanceof SyscallError) return false;
    throw error;
  }
}
