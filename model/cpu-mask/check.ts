import type { CpuSet } from '../cpu-set.ts';
import { ALL, briefMask, type CpuMask, summaryOf } from './mask.ts';

/** Why a mask does not match a VM or a host. */
export interface MaskFault {
  readonly code: 'count' | 'host-cpus';
  readonly message: string;
}

/**
 * Checks that a mask has one entry for all vCPUs or one for each. Call it when the mask or the number of vCPUs changes.
 */
export function checkCount(mask: CpuMask, vcpus: number): MaskFault | undefined {
  const { length } = mask.entries;
  if (length <= 1 || length === vcpus) return undefined;
  return {
    code: 'count',
    message: `the CPU mask ${briefMask(mask)} has entries for ${length} vCPUs, but the VM has ${vcpus}: give one entry for all of them, or ${vcpus}`,
  };
}

/**
 * Checks that a host has every CPU of a mask, by the ids of its online CPUs: a host with four CPUs may lack CPU 2 and
 * have CPU 7. Call it at each start and for each migration target.
 */
export function checkHost(mask: CpuMask, online: CpuSet): MaskFault | undefined {
  if (cpusOf(mask).isSubsetOf(online)) return undefined;
  const absent = cpusOf(mask).minus(online);
  return {
    code: 'host-cpus',
    message: `the CPU mask ${briefMask(mask)} names CPU ${absent.brief}, which is not online on this host (it has ${online.brief})`,
  };
}

/** All host CPUs in the mask; `all` adds none. */
export function cpusOf(mask: CpuMask): CpuSet {
  return summaryOf(mask).cpus;
}

/**
 * The mask to use on a host: the given mask if the host has its CPUs, otherwise `all` if the caller replaces a mismatch
 * instead of refusing it.
 */
export function maskForHost(
  mask: CpuMask,
  online: CpuSet,
  fixMismatch: boolean,
): { readonly mask: CpuMask; readonly fellBack: boolean } | { readonly fault: MaskFault } {
  const fault = checkHost(mask, online);
  if (fault === undefined) return { mask, fellBack: false };
  return fixMismatch ? { mask: ALL, fellBack: true } : { fault };
}
