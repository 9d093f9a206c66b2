import type { CpuSet } from '../cpu-set.ts';
import { maskForHost } from './check.ts';
import { briefMask, type CpuMask } from './mask.ts';
import { planPins, type VcpuPin } from './plan.ts';

/** A running VM as its host sees it. */
export interface VmOnHost {
  readonly mask: CpuMask;
  /** Take `all` in the place of a mask that the host has not the CPUs of. */
  readonly fixMismatch: boolean;
  /** The vCPU indexes of the threads found, in any order. */
  readonly indexes: readonly number[];
  readonly online: CpuSet;
  /** The cpuset of the container. */
  readonly container: CpuSet;
  /** CPUs that are not the VM's although its cpuset may still hold them: reserved ones, and other containers' own. */
  readonly withheld: CpuSet;
}

export type HostPins =
  /** Every vCPU's CPUs, never beyond `container` without `withheld`. `fellBack`: `all` was taken for the mask. */
  | { readonly kind: 'pin'; readonly pins: readonly VcpuPin[]; readonly fellBack: boolean }
  | { readonly kind: 'refused'; readonly reason: 'Threads' | 'Empty' | 'HostCPUs'; readonly message: string };

const REASONS = { threads: 'Threads', count: 'Threads', empty: 'Empty' } as const;

/**
 * Where the vCPU threads of a VM belong on its host, or why none of them may be pinned. How many vCPUs there should be
 * is told by the mask, unless it has one entry for all of them.
 */
export function hostPins({ mask, fixMismatch, indexes, online, container, withheld }: VmOnHost): HostPins {
  const chosen = maskForHost(mask, online, fixMismatch);
  if ('fault' in chosen) return { kind: 'refused', reason: 'HostCPUs', message: chosen.fault.message };
  const { length } = mask.entries;
  const plan = planPins(chosen.mask, indexes, length > 1 ? length : indexes.length, container.minus(withheld));
  if (plan.kind === 'refused') {
    const message = plan.code === 'threads' ? `the CPU mask ${briefMask(mask)}: ${plan.message}` : plan.message;
    return { kind: 'refused', reason: REASONS[plan.code], message };
  }
  return { kind: 'pin', pins: plan.pins, fellBack: chosen.fellBack };
}
