import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatMask, parseMask } from '../../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { ParseError } from '../../../model/errors.ts';
import { parsedOrRefused, type Target } from '../engine.ts';
import { almost, type Repeated, withLong } from '../mutation.ts';

const id = fc.oneof(fc.nat(70), fc.nat(65_535));
const part = fc.oneof(
  id.map(String),
  fc.tuple(id, fc.nat(300)).map(([from, more]) => `${from}-${Math.min(from + more, 65_535)}`),
);
export const cpuList = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(','));
export const LONG_LISTS: readonly Repeated[] = [
  { piece: (i) => `${i % 65_536}`, joint: ',' },
  { piece: (i) => `${(i * 2) % 65_536}`, joint: ',' },
  { piece: (i) => `${i % 9}-65535`, joint: ',' },
  { piece: '0', joint: ',', tail: ',65535' },
];
/** The meaning of a list, read in the simplest way: the ids in order; undefined for an invalid list. */
export function naiveCpus(text: string): number[] | undefined {
  const has = new Uint8Array(65_536);
  for (const item of text === '' ? [] : text.split(',')) {
    const [, from, to] = /^(\d+)(?:-(\d+))?$/.exec(item) ?? [];
    const [first, last] = [Number(from), Number(to ?? from)];
    if (from === undefined || last < first || last > 65_535) return undefined;
    has.fill(1, first, last + 1);
  }
  const cpus: number[] = [];
  for (let cpu = 0; cpu < has.length; cpu++) if (has[cpu] === 1) cpus.push(cpu);
  return cpus;
}
/** deepEqual would take most of the time. */
export function sameNumbers(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((one, i) => one === b[i]);
}
export const cpuSet: Target<string> = {
  name: 'cpu-set',
  about: 'CPU lists give the CPUs of a naive reading, and survive writing and reading',
  inputs: withLong(almost(cpuList, ['0-3,8-11', '0', '0-65535', '1,3,5,7']), 520_000, ...LONG_LISTS),
  judge(text) {
    const parsed = parsedOrRefused(() => CpuSet.parse(text), ParseError);
    const naive = naiveCpus(text.trim());
    if (parsed === undefined) return 'refused';
    assert.ok(naive !== undefined, 'taken, but no list of CPUs');
    assert.deepEqual(
      [...parsed.value],
      [...naive].sort((a, b) => a - b),
    );
    assert.ok(CpuSet.parse(parsed.value.toString()).equals(parsed.value), 'read back differently');
    return 'accepted';
  },
};

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
