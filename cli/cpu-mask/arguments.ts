import { InvalidArgumentError } from 'commander';
import { type CpuMask, parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';
import { usageError } from '../support/exit-status.ts';

/** The most vCPUs a QEMU machine has. */
const MOST_VCPUS = 4096;

/** @throws CliError (usage) naming the entry that is wrong */
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
