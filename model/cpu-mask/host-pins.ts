import { countText } from '../amounts.ts';
import type { CpuSet } from '../cpu-set.ts';
import {
  briefMask,
  type CpuMask,
  checkCount,
  entryOf,
  isForWholeVm,
  type MaskEntry,
  maskForHost,
  maskForVcpus,
  pinsNothing,
} from './mask.ts';

export interface VcpuPin {
  readonly vcpu: number;
  readonly cpus: CpuSet;
}

export type PinPlan =
  /** In the order of the vCPUs; empty if the mask pins nothing. `whole`: for all other threads. */
  | { readonly kind: 'pin'; readonly pins: readonly VcpuPin[]; readonly whole: CpuSet | undefined }
  /** No thread may be pinned, and the VM must not resume. */
  | { readonly kind: 'refused'; readonly code: 'threads' | 'count' | 'empty'; readonly message: string };

/**
 * The CPUs of each vCPU thread, or why no thread may be pinned, so that a VM is never partly pinned.
 * @param indexes in any order; they must be 0 to vcpus-1
 * @param allowed the container's cpuset without reserved CPUs; masks never exceed it
 */
export function planPins(mask: CpuMask, indexes: readonly number[], vcpus: number, allowed: CpuSet): PinPlan {
  const sortedIndexes = [...indexes].sort((a, b) => a - b);
  if (sortedIndexes.length !== vcpus || sortedIndexes.some((index, i) => index !== i)) {
    const present = sortedIndexes.join(', ') || 'none';
    return refused('threads', `expected the threads of vCPUs 0 to ${vcpus - 1}, found those of ${present}`);
  }
  const count = checkCount(mask, vcpus);
  if (count !== undefined) return refused('count', count);
  if (pinsNothing(mask)) return { kind: 'pin', pins: [], whole: undefined };
  const sets = new Map(mask.entries.map((entry) => [entry, within(entry, allowed)]));
  const pins = sortedIndexes.map((vcpu) => ({ vcpu, cpus: sets.get(entryOf(mask, vcpu) ?? 'all') ?? allowed }));
  const empty = pins.find(({ cpus }) => cpus.isEmpty);
  if (empty === undefined) return { kind: 'pin', pins, whole: isForWholeVm(mask) ? pins[0]?.cpus : undefined };
  const what = `the CPU mask ${briefMask(mask)} leaves vCPU ${empty.vcpu} without a CPU`;
  return refused('empty', `${what}: the VM may use ${allowed.brief}`);
}

/** The CPUs of an entry that a VM may use; for `all`, all allowed CPUs. */
export function within(entry: MaskEntry, allowed: CpuSet): CpuSet {
  return entry === 'all' ? allowed : entry.intersect(allowed);
}

function refused(code: 'threads' | 'count' | 'empty', message: string): PinPlan {
  return { kind: 'refused', code, message };
}

export interface VmOnHost {
  readonly mask: CpuMask;
  readonly fixMismatch: boolean;
  readonly indexes: readonly number[];
  readonly online: CpuSet;
  readonly container: CpuSet;
  /** CPUs of its cpuset that the VM must not use: reserved ones and exclusive ones of other containers. */
  readonly withheld: CpuSet;
  /**
   * Whether its launcher is the target of a migration: KubeVirt changes the VMI's vCPUs without its mask. Then
   * additional vCPUs run anywhere, and additional entries wait for their vCPUs.
   */
  readonly mayBePlugged: boolean;
}

interface OtherCount {
  /** Fewer vCPUs than entries; also for a moment while a guest starts its vCPU threads. */
  readonly waits: boolean;
  readonly message: string;
}

export type HostPins =
  | {
      readonly kind: 'pin';
      /** In the order of the vCPUs, within `container` minus `withheld`; empty if `all` replaced the mask. */
      readonly pins: readonly VcpuPin[];
      /** CPUs for all other threads, if the mask applies to the whole VM. */
      readonly whole: CpuSet | undefined;
      /** `all` replaced the mask. */
      readonly fellBack: boolean;
      readonly otherCount: OtherCount | undefined;
    }
  | { readonly kind: 'refused'; readonly reason: 'Threads' | 'Empty' | 'HostCPUs'; readonly message: string };

const REASONS = { threads: 'Threads', count: 'Threads', empty: 'Empty' } as const;

/** The mask determines the number of vCPUs, unless it has a single entry or vCPUs may have been hotplugged. */
export function hostPins(vm: VmOnHost): HostPins {
  const { mask, fixMismatch, indexes, online, container, withheld, mayBePlugged } = vm;
  const chosen = maskForHost(mask, online, fixMismatch);
  if ('fault' in chosen) return { kind: 'refused', reason: 'HostCPUs', message: chosen.fault };
  const { length } = mask.entries;
  const vcpus = length > 1 && !mayBePlugged ? length : indexes.length;
  const usable = mayBePlugged ? maskForVcpus(chosen.mask, vcpus) : chosen.mask;
  const plan = planPins(usable, indexes, vcpus, container.minus(withheld));
  if (plan.kind === 'refused') {
    const message = plan.code === 'threads' ? `the CPU mask ${briefMask(mask)}: ${plan.message}` : plan.message;
    return { kind: 'refused', reason: REASONS[plan.code], message };
  }
  // A list of entries that is cut to a single vCPU still applies to that vCPU only.
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
  const message = `the CPU mask ${briefMask(mask)} has entries for ${countText(entries, 'vCPU')}, and the VM has ${vcpus}: ${what}`;
  return { waits: entries > vcpus, message };
}

export interface Overlap<T> {
  readonly a: T;
  readonly b: T;
  readonly cpus: CpuSet;
}

/** Each pair once. The caller leaves out VMs that are not pinned, because they overlap with all others. */
export function overlaps<T>(vms: readonly { readonly vm: T; readonly cpus: CpuSet }[]): readonly Overlap<T>[] {
  return vms.flatMap((a, i) =>
    vms.slice(i + 1).flatMap((b) => {
      const cpus = a.cpus.intersect(b.cpus);
      return cpus.isEmpty ? [] : [{ a: a.vm, b: b.vm, cpus }];
    }),
  );
}
