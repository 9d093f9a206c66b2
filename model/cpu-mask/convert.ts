import { CpuSet } from '../cpu-set.ts';
import { PlumblineError } from '../errors.ts';
import { within } from './host-pins.ts';
import { briefMask, type CpuMask, checkCount, entryOf, pinsNothing } from './mask.ts';

export class MaskFormError extends PlumblineError {
  constructor(message: string) {
    super('cpu-mask-form', message);
  }
}

/**
 * For taskset and sched_setaffinity(2): CPUs 1 and 3 are 0x0000000A, with any number of groups of eight digits.
 * @param online replaces `all` @throws MaskFormError if the mask does not have entries for that many vCPUs
 */
export function toTaskset(mask: CpuMask, vcpus: number, online: CpuSet): readonly string[] {
  const fault = checkCount(mask, vcpus);
  if (fault !== undefined) throw new MaskFormError(fault);
  return Array.from({ length: vcpus }, (_, vcpu) => hexMask(within(entryOf(mask, vcpu) ?? 'all', online)));
}

/** A set in the form 0x0000000A: upper-case digits, padded to a multiple of eight. */
function hexMask(cpus: CpuSet): string {
  const digits = cpus.toMask().slice(2).toUpperCase();
  return `0x${digits.padStart(Math.ceil(digits.length / 8) * 8, '0')}`;
}

/**
 * The `cpus` line of a Xen domain; undefined if the mask pins nothing. Ganeti writes `cpu =`, which Xen does not
 * support, and 0-63 for `all` in a list. @param online replaces `all`, which otherwise stays `all` (xl.cfg(5))
 */
export function toXen(mask: CpuMask, online?: CpuSet): string | undefined {
  if (pinsNothing(mask)) return undefined;
  const texts = mask.entries.map((entry) => `"${entry === 'all' ? (online ?? entry) : entry}"`);
  return `cpus = ${texts.length === 1 ? texts[0] : `[ ${texts.join(', ')} ]`}`;
}

/**
 * The cpuset of an LXC container, which has no vCPUs: as many CPUs as the instance has vCPUs; undefined: not pinned.
 * @throws MaskFormError if there are several entries or a different number of CPUs
 */
export function toLxc(mask: CpuMask, vcpus: number): string | undefined {
  if (pinsNothing(mask)) return undefined;
  const [entry, ...more] = mask.entries;
  const refusal = (why: string) => new MaskFormError(`CPU mask ${briefMask(mask)}: a container ${why}`);
  if (!(entry instanceof CpuSet) || more.length > 0) throw refusal('has no vCPUs, give one list of CPUs for all of it');
  if (entry.size === vcpus) return entry.toString();
  throw refusal(`needs exactly as many CPUs as it has vCPUs, ${vcpus}; these are ${entry.size}`);
}
