import type { CpuSet } from '../../model/cpu-set.ts';
import { SyscallError, type ThreadAffinity } from '../../native/affinity.ts';
import { allowedOf } from '../processes/proc.ts';

/** The kernel's answer to a target that it did not apply as requested: the request is not repeated. */
interface Settled {
  readonly target: CpuSet;
  readonly effective: CpuSet;
  readonly refused?: string;
}

/** A thread whose mask differed from its main thread's; `start` in clock ticks since the machine's start. */
interface OddThread {
  readonly tid: number;
  readonly start: number;
  readonly cpus: CpuSet;
}

/** Before the agent moved any. A thread that is not listed had the main thread's mask, or would have inherited it. */
export interface OriginalMasks {
  readonly main: CpuSet;
  readonly odd: readonly OddThread[];
}

/** @throws UnreadableError */
export function originalMaskOf(
  masks: OriginalMasks,
  tid: number,
  startOf: (tid: number) => number | undefined,
): CpuSet {
  const odd = masks.odd.find((thread) => thread.tid === tid);
  return odd !== undefined && startOf(tid) === odd.start ? odd.cpus : masks.main;
}

export type TargetOf = (mask: CpuSet, tid: number) => CpuSet;

/**
 * Sets the masks of one process's threads. Owner: the pass over that process. Age: a thread's mask as last read, in a
 * pass or a check; the kernel's answer to a target, while target and mask are the same. End: with the thread.
 */
export class ThreadMover {
  readonly #affinity: ThreadAffinity;
  readonly #settled = new Map<number, Settled>();
  readonly #observed = new Map<number, CpuSet>();
  #displaced = 0;

  constructor(affinity: ThreadAffinity) {
    this.#affinity = affinity;
  }

  current(tid: number): CpuSet | undefined {
    return allowedOf(this.#affinity, tid);
  }

  observe(tid: number): CpuSet | undefined {
    const mask = this.current(tid);
    if (mask !== undefined) this.#observed.set(tid, mask);
    return mask;
  }

  lastObserved(tid: number): CpuSet | undefined {
    return this.#observed.get(tid);
  }

  /** @returns whether the thread's mask changed */
  move(tid: number, targetOf: TargetOf): boolean {
    const left = this.#observed.get(tid);
    const mask = this.observe(tid);
    if (mask === undefined) return false;
    const target = targetOf(mask, tid);
    const effective = mask.equals(target) ? mask : this.#put(tid, mask, target);
    if (effective.equals(target)) {
      this.#settled.delete(tid);
      // If the kernel does not accept the target, a cpuset changed the mask, not another process.
      if (left !== undefined && !mask.equals(left)) this.#displaced++;
    }
    return !effective.equals(mask);
  }

  /** @returns the resulting mask: the old one if the kernel refuses the target or has refused it before */
  #put(tid: number, mask: CpuSet, target: CpuSet): CpuSet {
    const before = this.#settled.get(tid);
    if (before?.target.equals(target) && before.effective.equals(mask)) return mask;
    try {
      this.#affinity.set(tid, target.toWords(1));
    } catch (error) {
      if (!(error instanceof SyscallError)) throw error;
      if (error.code !== 'ESRCH') this.#settled.set(tid, { target, effective: mask, refused: error.code });
      return mask;
    }
    const effective = this.observe(tid) ?? target;
    if (!effective.equals(target)) this.#settled.set(tid, { target, effective });
    return effective;
  }

  /** Requests again what the kernel did not apply, of threads that are still where it left them. @returns moved threads */
  repeat(tids: readonly number[]): number {
    let moved = 0;
    for (const tid of tids) {
      const answer = this.#settled.get(tid);
      if (answer === undefined) continue;
      this.#settled.delete(tid);
      if (this.current(tid)?.equals(answer.effective) === true && this.move(tid, () => answer.target)) moved++;
    }
    return moved;
  }

  isUnchanged(tid: number): boolean {
    const mask = this.current(tid);
    const before = this.#observed.get(tid);
    return mask === undefined || before === undefined ? mask === before : mask.equals(before);
  }

  forgetOthers(tids: readonly number[]): void {
    if (this.#observed.size <= tids.length && this.#settled.size === 0) return;
    const alive = new Set(tids);
    for (const threads of [this.#settled, this.#observed])
      for (const tid of threads.keys()) if (!alive.has(tid)) threads.delete(tid);
  }

  /** What the kernel did not apply, and the number of threads that another process has moved since the last call. */
  takeReport() {
    const displaced = this.#displaced;
    this.#displaced = 0;
    const errors = [...this.#settled.values()].flatMap(({ refused }) => refused ?? []);
    return { displaced, clipped: this.#settled.size - errors.length, errors };
  }

  refusalOf(tid: number): string | undefined {
    const answer = this.#settled.get(tid);
    return answer === undefined ? undefined : (answer.refused ?? 'clipped');
  }
}
