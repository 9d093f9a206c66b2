import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { REASONS, type Reason } from '../../model/vm-state/reasons.ts';

/** Schemas of data that several commands print with `-o json`; docs/schemas is generated from them. */

export const cpus = z.array(z.number().int().nonnegative()).meta({ description: 'CPUs by number, ascending' });
export const numaNodes = z.array(z.number().int().nonnegative()).meta({ description: 'NUMA nodes by number' });
export const verdict = z.enum(['ok', 'stopped', 'waiting', 'degraded', 'broken']);
export const reason = z.enum(Object.keys(REASONS) as [Reason, ...Reason[]]);
/** CPUs of a list, as in /sys, by number. @throws ParseError */
export const numbersOf = (list: string): number[] => CpuSet.parse(list).toArray();
