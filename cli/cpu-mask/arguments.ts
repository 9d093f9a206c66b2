import { InvalidArgumentError } from 'commander';
import { type CpuMask, parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';
import { usageError } from '../support/exit-status.ts';

/** Largest number of vCPUs of a QEMU machine. */
const MOST_VCPUS = 4096;

/** Parses a mask on the command line. @throws CliError (usage) naming the wrong entry */
export function readMask(text: string): CpuMask {
  try {
    return parseMask(text);
  } catch (error) {
    if (error instanceof ParseError) throw usageError(error.message, { cause: error });
    throw error;
  }
}

export function readVcpus(text: string): number {
  const vcpus = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  if (vcpus < 1 || vcpus > MOST_VCPUS) throw new InvalidArgumentError(`expected 1 to ${MOST_VCPUS} vCPUs`);
  return vcpus;
}

export function readCpus(text: string): CpuSet {
  try {
    return CpuSet.parse(text);
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error));
  }
}
