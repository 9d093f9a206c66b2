import { InvalidArgumentError } from 'commander';
import { type CpuMask, parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';

/** Apart from other arguments and outputs: completion in a shell loads those, and this takes a tenth of its time. */

/** The argument of a flag. @throws InvalidArgumentError with the wrong entry */
export function readMask(text: string): CpuMask {
  if (text.trim() === '') throw new InvalidArgumentError('the mask is empty; all pins nothing');
  return parsed(() => parseMask(text));
}

/** The same for CPUs. @throws InvalidArgumentError */
export function readCpus(text: string): CpuSet {
  return parsed(() => CpuSet.parse(text));
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof ParseError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}

/** CPUs of a list, as in /sys, by number. @throws ParseError */
export function numbersOf(list: string): number[] {
  return CpuSet.parse(list).toArray();
}
