import { InvalidArgumentError } from 'commander';
import { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';

/** Collects --node-selector, which may be repeated. */
export function nodeSelector(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, label, value] = /^([A-Za-z0-9][A-Za-z0-9._/-]*)=([A-Za-z0-9._-]*)$/.exec(text) ?? [];
  if (label === undefined || value === undefined)
    throw new InvalidArgumentError('expected label=value, such as rack=a');
  return { ...before, [label]: value };
}

export function cpuList(text: string): string {
  try {
    return CpuSet.parse(text).toString();
  } catch (error) {
    if (error instanceof ParseError) throw new InvalidArgumentError('expected CPUs, such as 0-63');
    throw error;
  }
}
