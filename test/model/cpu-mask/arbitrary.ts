import fc from 'fast-check';
import type { CpuMask } from '../../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../../model/cpu-set.ts';

const entry = fc.oneof(
  fc.constant('all' as const),
  fc.uniqueArray(fc.nat(300), { minLength: 1, maxLength: 12 }).map((ids) => CpuSet.of(ids)),
);

export const masks: fc.Arbitrary<CpuMask> = fc.array(entry, { maxLength: 16 }).map((entries) => ({ entries }));
