import { toLxc, toTaskset, toXen } from '../../model/cpu-mask/convert.ts';
import { type CpuMask, entryOf, formatMask, summaryOf } from '../../model/cpu-mask/mask.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import { usageError } from '../support/exit-status.ts';

export const FORMS = ['canonical', 'list', 'taskset', 'xen', 'lxc'] as const;
export type Form = (typeof FORMS)[number];

export interface ConvertRequest {
  readonly mask: CpuMask;
  readonly form: Form;
  /** Undefined: as many as the mask has entries. */
  readonly vcpus: number | undefined;
  /** The CPUs that `all` stands for; undefined: unknown. */
  readonly online: CpuSet | undefined;
}

/**
 * The mask in another format, line by line: one for each vCPU, or one for the whole VM. Empty if nothing is pinned.
 * @throws CliError (usage) if an argument is missing that the format needs; MaskFormError if the format cannot express
 * the mask
 */
export function convertMask({ mask, form, vcpus, online }: ConvertRequest): readonly string[] {
  const count = vcpus ?? Math.max(1, mask.entries.length);
  switch (form) {
    case 'canonical':
      return [formatMask(mask)];
    case 'list':
      return Array.from({ length: count }, (_, vcpu) => {
        const entry = entryOf(mask, vcpu) ?? 'all';
        return entry === 'all' ? (online ?? entry).toString() : entry.toString();
      });
    case 'taskset':
      if (online === undefined && hasAll(mask)) {
        throw usageError(`the mask ${formatMask(mask) || '(empty)'} contains "all": list those CPUs with --online`);
      }
      return toTaskset(mask, count, online ?? summaryOf(mask).cpus);
    case 'xen':
      return lineOf(toXen(mask, online));
    case 'lxc':
      if (vcpus === undefined) throw usageError('give the number of CPUs of the container with --vcpus');
      return lineOf(toLxc(mask, vcpus));
  }
}

const hasAll = ({ entries }: CpuMask): boolean => entries.length === 0 || entries.includes('all');

const lineOf = (line: string | undefined): readonly string[] => (line === undefined ? [] : [line]);
