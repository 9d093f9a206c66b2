import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet, MAX_CPUS } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';

const MAX_CHARACTERS = 524_288;

const ids = fc.uniqueArray(fc.nat(1023), { maxLength: 200 });
const ascending = (set: Iterable<number>) => [...set].sort((a, b) => a - b);

describe('CpuSet', () => {
  it('matches a naive Set in every operation, up to 1,024 CPUs', () => {
    fc.assert(
      fc.property(ids, ids, fc.nat(1100), (a, b, probe) => {
        const [left, right] = [CpuSet.of(a), CpuSet.of(b)];
        const [naive, other] = [new Set(a), new Set(b)];
        const both = a.filter((id) => other.has(id));
        assert.deepEqual(left.toArray(), ascending(naive));
        assert.deepEqual(left.union(right).toArray(), ascending(new Set([...naive, ...other])));
        assert.deepEqual(left.intersect(right).toArray(), ascending(both));
        assert.deepEqual(left.minus(right).toArray(), ascending(a.filter((id) => !other.has(id))));
        const isSubset = both.length === naive.size;
        assert.deepEqual(
          [left.intersects(right), left.isSubsetOf(right), left.equals(right), left.has(probe)],
          [both.length > 0, isSubset, isSubset && naive.size === other.size, naive.has(probe)],
        );
        assert.deepEqual([left.size, left.isEmpty, left.first], [naive.size, naive.size === 0, ascending(naive)[0]]);
      }),
    );
  });

  it('survives conversion to its list, mask, words and JSON and back', () => {
    fc.assert(
      fc.property(ids, (members) => {
        const set = CpuSet.of(members);
        assert.ok(CpuSet.parse(set.toString()).equals(set));
        assert.ok(CpuSet.fromMask(set.toMask()).equals(set));
        assert.ok(CpuSet.fromWords(set.toWords(40)).equals(set));
        assert.ok(CpuSet.parse(JSON.parse(JSON.stringify(set))).equals(set));
      }),
    );
  });

  it('reads the kernel’s mask with a comma after each 32 bits', () => {
    assert.equal(CpuSet.fromMask('ff,ffffffff').toString(), '0-39');
    assert.equal(CpuSet.fromMask('1,0').toString(), '32');
    assert.equal(CpuSet.fromMask('f\n').toString(), '0-3');
  });

  const lists: [text: string, canonical: string][] = [
    ['', ''],
    ['0-3,8,10-11\n', '0-3,8,10-11'],
    ['0-2,1', '0-2'],
    ['31-32,4,1-2,2', '1-2,4,31-32'],
    ['1-126', '1-126'],
    ['0-65535', '0-65535'],
  ];
  for (const [text, canonical] of lists)
    it(`reads the list ${JSON.stringify(text)} as ${JSON.stringify(canonical)}`, () =>
      assert.equal(CpuSet.parse(text).toString(), canonical));

  const FORMAT = /expected numbers and ranges separated by commas, as in 0-3,8$/;
  const malformed = ['0-', '-1', '1,,2', ',', '1,', '0x3', '1 2', 'all', '+1', '1.5', '1-2-3', '٣'];
  for (const [text, message] of [
    ...malformed.map((list) => [list, FORMAT] as const),
    ['2,3-1', /the range "3-1" runs backwards$/],
    ['65536', /CPU ids end at 65535$/],
    ['0-999999999', /CPU ids end at 65535$/],
    ['99999999999999999999', /CPU ids end at 65535$/],
  ] as const)
    it(`refuses the list ${JSON.stringify(text)}`, () =>
      assert.throws(() => CpuSet.parse(text), { name: 'ParseError', message }));

  it('has a limit', () => assert.throws(() => CpuSet.parse('0-1024', 1024), /CPU ids end at 1023$/));

  for (const text of ['0xg', 'ff,', ',ff', 'ff,123456789', '0x-1', `1${'0'.repeat(MAX_CPUS / 4)}`])
    it(`refuses the mask ${JSON.stringify(text.slice(0, 12))}`, () =>
      assert.throws(() => CpuSet.fromMask(text), ParseError));

  it('reads a text of the greatest length, and none that is longer', () => {
    const list = `${'7,'.repeat(MAX_CHARACTERS / 2 - 1)}7\n`;
    assert.equal(list.length, MAX_CHARACTERS);
    assert.equal(CpuSet.parse(list).toString(), '7');
    assert.throws(() => CpuSet.parse(`${list}\n`), { message: /: it is longer than 524288 characters$/ });
    const mask = '1'.padStart(MAX_CHARACTERS, '0');
    assert.equal(CpuSet.fromMask(mask).toString(), '0');
    assert.throws(() => CpuSet.fromMask(`0${mask}`), { message: /: it is longer than 524288 characters$/ });
  });

  it('has no CPU that is beyond 32 bits, negative or not an integer', () => {
    const set = CpuSet.of([0, 1, 31, 63]);
    for (const id of [2 ** 32 + 1, -1, -31, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
      assert.equal(set.has(id), false);
    for (const id of [-1, 0.5, MAX_CPUS, Number.NaN]) assert.throws(() => CpuSet.of([id]), RangeError);
  });
});
