import { InvalidArgumentError } from 'commander';
import { type CpuMask, parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';

/** Largest number of vCPUs of a QEMU machine. */
const MAX_VCPUS = 4096;

/** Parsers of arguments and flags. @throws InvalidArgumentError with the wrong entry */

export function readMask(text: string): CpuMask {
  return parsed(() => parseMask(text));
}

export function readCpus(text: string): CpuSet {
  return parsed(() => CpuSet.parse(text));
}

export function readVcpus(text: string): number {
  const vcpus = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  if (vcpus < 1 || vcpus > MAX_VCPUS) throw new InvalidArgumentError(`expected 1 to ${MAX_VCPUS} vCPUs`);
  return vcpus;
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof ParseError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}
