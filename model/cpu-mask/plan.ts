import type { CpuSet } from '../cpu-set.ts';
import { checkCount } from './check.ts';
import { briefMask, type CpuMask, entryOf, isForWholeVm, type MaskEntry, pinsNothing } from './mask.ts';

/** The host CPUs of one vCPU on a host. */
export interface VcpuPin {
  readonly vcpu: number;
  readonly cpus: CpuSet;
}

export type PinPlan =
  /**
   * CPUs of each vCPU thread, in the order of the vCPUs; empty if the mask pins nothing, and the agent then unpins
   * threads. `whole`: CPUs for all other threads of the VM; undefined if the mask does not apply to them.
   */
  | { readonly kind: 'pin'; readonly pins: readonly VcpuPin[]; readonly whole: CpuSet | undefined }
  /** No thread may be pinned, and the VM must not resume. */
  | { readonly kind: 'refused'; readonly code: 'threads' | 'count' | 'empty'; readonly message: string };

/**
 * Computes the CPUs of each vCPU thread, or why no thread may be pinned, so that a VM is never partly pinned.
 *
 * @param indexes the vCPU indexes of the threads found, in any order; they must be 0 to vcpus-1
 * @param allowed CPUs that the VM may use (its container's cpuset without reserved CPUs); masks never exceed it
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
    `the CPU mask ${briefMask(mask)} leaves vCPU ${empty.vcpu} without a CPU: the VM may use ${allowed.brief}`,
  );
}

/** The CPUs of an entry that a VM may use; for `all`, all allowed CPUs. */
export function within(entry: MaskEntry, allowed: CpuSet): CpuSet {
  return entry === 'all' ? allowed : entry.intersect(allowed);
}

function refused(code: 'threads' | 'count' | 'empty', message: string): PinPlan {
  return { kind: 'refused', code, message };
}
