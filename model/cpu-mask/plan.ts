import type { CpuSet } from '../cpu-set.ts';
import { checkCount } from './check.ts';
import { briefMask, type CpuMask, entryOf, isForWholeVm, type MaskEntry, pinsNothing } from './mask.ts';

/** A vCPU's host CPUs as they are on a host. */
export interface VcpuPin {
  readonly vcpu: number;
  readonly cpus: CpuSet;
}

export type PinPlan =
  /**
   * Each vCPU thread's CPUs, in the order of the vCPUs; empty if the mask pins nothing, and the agent releases pinned
   * threads. `whole`: where all other threads of the VM belong; undefined where the mask leaves them alone.
   */
  | { readonly kind: 'pin'; readonly pins: readonly VcpuPin[]; readonly whole: CpuSet | undefined }
  /** Nothing may be pinned, and the VM is not to be resumed. */
  | { readonly kind: 'refused'; readonly code: 'threads' | 'count' | 'empty'; readonly message: string };

/**
 * Works out where each vCPU thread goes, or why none may be touched: so that a VM is never half pinned.
 *
 * @param indexes the vCPU indexes of the threads found, in any order; they must be 0 to vcpus-1
 * @param allowed what the VM may use at all (its container's cpuset without reserved CPUs); masks never reach beyond it
 */
export function planPins(mask: CpuMask, indexes: readonly number[], vcpus: number, allowed: CpuSet): PinPlan {
  const found = [...indexes].sort((a, b) => a - b);
  if (found.length !== vcpus || found.some((index, i) => index !== i)) {
    return refused(
      'threads',
      `expected the threads of vCPUs 0 to ${vcpus - 1}, found those of ${found.join(', ') || 'none'}`,
    );
  }
  const count = checkCount(mask, vcpus);
  if (count !== undefined) return refused('count', count.message);
  if (pinsNothing(mask)) return { kind: 'pin', pins: [], whole: undefined };
  const sets = new Map(mask.entries.map((entry) => [entry, within(entry, allowed)]));
  const pins = found.map((vcpu) => ({ vcpu, cpus: sets.get(entryOf(mask, vcpu) ?? 'all') ?? allowed }));
  const empty = pins.find(({ cpus }) => cpus.isEmpty);
  if (empty === undefined) return { kind: 'pin', pins, whole: isForWholeVm(mask) ? pins[0]?.cpus : undefined };
  return refused(
    'empty',
    `the CPU mask ${briefMask(mask)} leaves vCPU ${empty.vcpu} no CPU: the VM may use ${allowed.brief}`,
  );
}

/** The part of an entry that a VM may use; `all` is all of it. */
export function within(entry: MaskEntry, allowed: CpuSet): CpuSet {
  return entry === 'all' ? allowed : entry.intersect(allowed);
}

function refused(code: 'threads' | 'count' | 'empty', message: string): PinPlan {
  return { kind: 'refused', code, message };
}
