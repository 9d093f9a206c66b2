import type { CpuSet } from '../cpu-set.ts';
import { maskForHost } from './check.ts';
import { briefMask, type CpuMask, isForWholeVm, maskForVcpus } from './mask.ts';
import { planPins, type VcpuPin } from './plan.ts';

/** A running VM as its host sees it. */
export interface VmOnHost {
  readonly mask: CpuMask;
  /** Use `all` instead of a mask with CPUs that the host does not have. */
  readonly fixMismatch: boolean;
  /** The vCPU indexes of the threads found, in any order. */
  readonly indexes: readonly number[];
  readonly online: CpuSet;
  /** The cpuset of the container. */
  readonly container: CpuSet;
  /** CPUs that are not the VM's although its cpuset may still hold them: reserved ones, and other containers' own. */
  readonly withheld: CpuSet;
  /**
   * Its launcher is the target of a migration. KubeVirt plugs vCPUs in there, and changes the VMI's vCPUs without its mask:
   * so entries are for the first vCPUs, any further vCPU runs anywhere, and any further entry waits for its vCPU.
   */
  readonly mayBePlugged: boolean;
}

/** A mask with entries for more or fewer vCPUs than there are. */
export interface OtherCount {
  /** There are fewer vCPUs than entries, which is also so for a moment while a guest starts its vCPU threads. */
  readonly waits: boolean;
  readonly message: string;
}

export type HostPins =
  | {
      readonly kind: 'pin';
      /** Each vCPU's CPUs, in their order, never beyond `container` without `withheld`; none where `all` was taken for the mask. */
      readonly pins: readonly VcpuPin[];
      /** Where all other threads belong, with a mask for the whole VM. */
      readonly whole: CpuSet | undefined;
      /** `all` was taken for the mask. */
      readonly fellBack: boolean;
      readonly otherCount: OtherCount | undefined;
    }
  | { readonly kind: 'refused'; readonly reason: 'Threads' | 'Empty' | 'HostCPUs'; readonly message: string };

const REASONS = { threads: 'Threads', count: 'Threads', empty: 'Empty' } as const;

/**
 * Where the vCPU threads of a VM belong on its host, or why none of them may be pinned. How many vCPUs there should be
 * follows from the mask, unless it has one entry for all of them or the VM may have had vCPUs plugged in.
 */
export function hostPins(vm: VmOnHost): HostPins {
  const { mask, fixMismatch, indexes, online, container, withheld, mayBePlugged } = vm;
  const chosen = maskForHost(mask, online, fixMismatch);
  if ('fault' in chosen) return { kind: 'refused', reason: 'HostCPUs', message: chosen.fault.message };
  const { length } = mask.entries;
  const vcpus = length > 1 && !mayBePlugged ? length : indexes.length;
  const usable = mayBePlugged ? maskForVcpus(chosen.mask, vcpus) : chosen.mask;
  const plan = planPins(usable, indexes, vcpus, container.minus(withheld));
  if (plan.kind === 'refused') {
    const message = plan.code === 'threads' ? `the CPU mask ${briefMask(mask)}: ${plan.message}` : plan.message;
    return { kind: 'refused', reason: REASONS[plan.code], message };
  }
  // A list of entries that is cut to a single vCPU is still for that vCPU alone.
  const whole = isForWholeVm(chosen.mask) ? plan.whole : undefined;
  return { kind: 'pin', pins: plan.pins, whole, fellBack: chosen.fellBack, otherCount: otherCount(mask, vcpus) };
}

function otherCount(mask: CpuMask, vcpus: number): OtherCount | undefined {
  const entries = mask.entries.length;
  if (entries <= 1 || entries === vcpus) return undefined;
  const what =
    entries < vcpus
      ? 'the others run on any of its CPUs until it is restarted with a mask for them'
      : 'the other entries wait for vCPUs that are plugged in';
  const message = `the CPU mask ${briefMask(mask)} has entries for ${entries} vCPUs, and the VM has ${vcpus}: ${what}`;
  return { waits: entries > vcpus, message };
}
