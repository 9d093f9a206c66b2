import type { CpuSet } from '../cpu-set.ts';
import { ALL, briefMask, type CpuMask, summaryOf } from './mask.ts';

/** Why a mask does not fit a VM or a host. */
export interface MaskFault {
  readonly code: 'count' | 'host-cpus';
  readonly message: string;
}

/**
 * Checks that a mask has an entry for every vCPU: one for all of them, or just as many as there are. To be asked when
 * either the mask or the number of vCPUs changes.
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
 * Checks that a host has every CPU that a mask names, by the ids that are online: a host of four CPUs may lack CPU 2
 * and have CPU 7. To be asked at each start and for each target of a migration.
 */
export function checkHost(mask: CpuMask, online: CpuSet): MaskFault | undefined {
  if (cpusOf(mask).isSubsetOf(online)) return undefined;
  const absent = cpusOf(mask).minus(online);
  return {
    code: 'host-cpus',
    message: `the CPU mask ${briefMask(mask)} names CPU ${absent.brief}, which is not online on this host (it has ${online.brief})`,
  };
}

/** All host CPUs that the mask names; `all` names none. */
export function cpusOf(mask: CpuMask): CpuSet {
  return summaryOf(mask).cpus;
}

/**
 * The mask to use on a host: itself if the host has its CPUs, otherwise `all` if the caller fixes a mismatch instead of
 * refusing it.
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
