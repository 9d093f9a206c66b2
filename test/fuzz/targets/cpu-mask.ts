import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatMask, parseMask } from '../../../model/cpu-mask/mask.ts';
import { ParseError } from '../../../model/errors.ts';
import { almost, withLong } from '../mutation.ts';
import { parsedOrRefused, type Target } from '../target.ts';
import { cpuList, LONG_LISTS, naiveCpus, sameNumbers } from './cpu-set.ts';

const entry = fc.oneof({ weight: 4, arbitrary: cpuList }, { weight: 1, arbitrary: fc.constant('all') });
const mask = fc.array(entry, { maxLength: 8 }).map((entries) => entries.join(':'));

/** Entries that are read naively, which takes time. */
const NAIVELY = 16;

export const cpuMask: Target<string> = {
  name: 'cpu-mask',
  about: 'Ganeti’s masks give the CPUs of a naive reading for each vCPU, and survive writing and reading',
  inputs: withLong(
    almost(mask, ['all', '0-3', '1:3', '0,1:2-3:all']),
    16_000,
    ...LONG_LISTS,
    ...LONG_LISTS.map((list) => ({ ...list, joint: ':' })),
    { piece: 'all', joint: ':' },
    { piece: (i) => `${65_535 - i}`, joint: ':' },
  ),
  judge(text) {
    const parsed = parsedOrRefused(() => parseMask(text), ParseError);
    if (parsed === undefined) return 'refused';
    const { entries } = parsed.value;
    const parts = text === '' ? [] : text.split(':');
    assert.equal(entries.length, parts.length);
    for (const [vcpu, one] of entries.slice(0, NAIVELY).entries()) {
      if (one === 'all') continue;
      const naive = naiveCpus(parts[vcpu] ?? '');
      assert.ok(naive !== undefined && naive.length > 0, `entry ${vcpu} was taken, but names no CPUs`);
      assert.ok(sameNumbers([...one], naive), `entry ${vcpu}: other CPUs than a naive reading finds`);
    }
    assert.equal(formatMask(parseMask(formatMask(parsed.value))), formatMask(parsed.value));
    return 'accepted';
  },
};
