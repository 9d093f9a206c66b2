import { planPins } from '../../model/cpu-mask/host-pins.ts';
import { briefMask, type CpuMask, checkCount, entryOf, isForWholeVm, maskForHost } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import { EVERY_CPU, SyscallError, type ThreadAffinity } from '../../native/affinity.ts';
import { moveThreads, PinError, pinThreads, type ThreadPin } from '../../native/pin-threads.ts';
import type { Qmp, QmpCpu } from '../../native/qmp.ts';

/** The VM is unchanged: no thread was pinned, and the guest was not resumed. */
class NotPinned extends PlumblineError {
  constructor(why: string, options?: ErrorOptions) {
    super('not-pinned', `${why}; no thread is pinned, and the guest was not resumed`, options);
  }
}

export interface PinRequest {
  readonly mask: CpuMask;
  readonly vcpus: number | undefined;
  readonly online: CpuSet;
  readonly fixMismatch: boolean;
  readonly resume: boolean;
}

export type Pinned = Awaited<ReturnType<typeof pinQemu>>;

/**
 * Started with -S and never run: the only state that this command ends. It does not end a user's pause or a migration.
 */
const PRELAUNCH = 'prelaunch';

/**
 * Ganeti's sequence for a QEMU that was started with -S: list the vCPU threads, pin each, read back the result, and let
 * the guest run. A mask with a single entry pins QEMU's other threads as well; `all` lets its threads use every CPU
 * again.
 * @throws NotPinned if there are too few or too many threads, gaps in their indexes, CPUs that the host lacks, or a
 * vCPU thread that the kernel does not move. Then every thread has its previous CPUs and the guest was not resumed
 * @throws QmpError if the monitor does not respond; then nothing was pinned either
 */
export async function pinQemu(qmp: Qmp, affinity: ThreadAffinity, request: PinRequest) {
  const { online, resume } = request;
  const status = await qmp.status();
  const cpus = await qmp.cpus();
  const { mask, fellBack } = maskFor(request);
  const { vcpus, whole } = plan(mask, cpus, request);
  const putVcpusBack = pin(affinity, vcpus);
  const others = whole === undefined ? undefined : moveOthers(affinity, qmp, cpus, whole);
  const resumed = resume && status === PRELAUNCH;
  try {
    if (resumed) await qmp.execute('cont');
  } catch (error) {
    putVcpusBack();
    others?.putBack();
    throw error;
  }
  const vcpuThreads = cpus.map(({ index, tid }) => ({ index, tid, cpus: CpuSet.fromWords(affinity.get(tid)) }));
  return {
    vcpus: vcpuThreads.map((thread) => ({ ...thread, cpus: thread.cpus.intersect(online) })),
    /** QEMU's other threads, which a mask with a single entry moves as well; null if the mask does not apply to them. */
    others: others === undefined ? null : { threads: others.threads, left: others.left },
    fellBack,
    resumed,
    status,
  };
}

function maskFor({ mask, online, fixMismatch, vcpus }: PinRequest) {
  const count = vcpus === undefined ? undefined : checkCount(mask, vcpus);
  if (count !== undefined) throw new NotPinned(count);
  const chosen = maskForHost(mask, online, fixMismatch);
  if ('fault' in chosen) throw new NotPinned(chosen.fault);
  return chosen;
}

function plan(mask: CpuMask, cpus: readonly QmpCpu[], { mask: requested, vcpus, online }: PinRequest) {
  const expected = vcpus ?? (requested.entries.length > 1 ? requested.entries.length : cpus.length);
  const tids = new Set(cpus.map(({ tid }) => tid));
  if (tids.size !== cpus.length) {
    throw new NotPinned('several vCPUs share a thread: start QEMU with -accel kvm, or -accel tcg,thread=multi');
  }
  const answer = planPins(
    mask,
    cpus.map(({ index }) => index),
    expected,
    online,
  );
  if (answer.kind === 'refused') throw new NotPinned(`the CPU mask ${briefMask(requested)}: ${answer.message}`);
  const byIndex = new Map(answer.pins.map((pin) => [pin.vcpu, pin.cpus.toWords(2)]));
  const pins = cpus.map(({ index, tid }): ThreadPin => {
    const words = entryOf(mask, index) === 'all' ? undefined : byIndex.get(index);
    return words === undefined ? { tid, words: EVERY_CPU, loose: true } : { tid, words };
  });
  return { vcpus: pins, whole: isForWholeVm(mask) ? (answer.whole?.toWords(2) ?? EVERY_CPU) : undefined };
}

/** @throws NotPinned */
function pin(affinity: ThreadAffinity, pins: readonly ThreadPin[]): () => void {
  try {
    return pinThreads(affinity, pins);
  } catch (error) {
    if (error instanceof PinError) {
      throw new NotPinned(`${error.message}; it got ${CpuSet.fromWords(error.got)}`, { cause: error });
    }
    throw error instanceof SyscallError ? new NotPinned(error.message, { cause: error }) : error;
  }
}

/** An unpinned thread may start one meanwhile, which the next round finds; one of a pinned thread inherits its CPUs. */
const MAX_ROUNDS = 8;

/** Emulator, IO threads, workers. `threads` moved, the kernel did not move `left`, `putBack` restores all. */
function moveOthers(affinity: ThreadAffinity, qmp: Qmp, cpus: readonly QmpCpu[], words: Uint32Array) {
  const vcpus = new Set(cpus.map(({ tid }) => tid));
  const before = new Map<number, Uint32Array>();
  const left: number[] = [];
  let threads = 0;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const tids = qmp.threads().filter((tid) => !vcpus.has(tid) && !before.has(tid));
    if (tids.length === 0) break;
    for (const tid of tids) before.set(tid, allowedOf(affinity, tid) ?? words);
    const moved = moveThreads(affinity, tids, words);
    threads += moved.there.length;
    left.push(...moved.left);
  }
  const putBack = () => {
    for (const [tid, originalMask] of before) moveThreads(affinity, [tid], originalMask);
  };
  return { threads, left, putBack };
}

/** Undefined if the thread has ended. */
function allowedOf(affinity: ThreadAffinity, tid: number): Uint32Array | undefined {
  try {
    return affinity.get(tid);
  } catch (error) {
    if (error instanceof SyscallError) return undefined;
    throw error;
  }
}
