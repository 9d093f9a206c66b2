import assert from 'node:assert/strict';
import fc from 'fast-check';
import * as z from 'zod';
import { alignedCpus, annotatedThreadsPerCore, isAligned } from '../model/alignment.ts';
import { amountText, countText, cpuListText, cpusAre, numaNodesText } from '../model/amounts.ts';
import { BoundedMap } from '../model/bounded-map.ts';
import { CpuSet } from '../model/cpu-set.ts';
import { cut, issuesText, quote } from '../model/errors.ts';
import { isObject, parseJson, resultOrNone } from '../model/json.ts';
import { byName, byText, groupBy } from '../model/lists.ts';
import { bytesText, integralCpus, milliValue, parseQuantity, wholeValue } from '../model/quantity.ts';
import { ownsField } from '../model/shapes.ts';

describe('whole cores', () => {
  for (const [cpus, threadsPerCore, aligned] of [
    [9, 2, 10],
    [10, 2, 10],
    [9, 4, 12],
    [9, 1, 9],
  ] as const) {
    it(`of ${threadsPerCore} threads: ${cpus} CPUs become ${aligned}, and stay so in a second pass`, () => {
      assert.deepEqual(
        [cpus, aligned].map((count) => alignedCpus(count, threadsPerCore)),
        [aligned, aligned],
      );
      assert.equal(isAligned(cpus, threadsPerCore), cpus === aligned);
    });
  }

  it('of an annotated VM are those of the largest cores of the nodes, and never of fewer than two threads', () =>
    assert.deepEqual([[], [1], [2, 8, 4]].map(annotatedThreadsPerCore), [2, 2, 8]));
});

describe('amounts as text', () => {
  for (const [text, expected] of [
    [countText(1, 'node'), '1 node'],
    [countText(0, 'node'), '0 nodes'],
    [countText(2, 'entry', 'entries'), '2 entries'],
    [cpuListText('3'), 'CPU 3'],
    [cpuListText('3,5'), 'CPUs 3,5'],
    [numaNodesText('1'), 'NUMA node 1'],
    [numaNodesText('0-1'), 'NUMA nodes 0-1'],
    [cpusAre(CpuSet.parse('3')), 'CPU 3 is'],
    [cpusAre(CpuSet.parse('3-5')), 'CPUs 3-5 are'],
    [amountText('cpu', 1.5), '1.5 CPUs'],
    [amountText('cpu', 0.1 + 0.2), '0.3 CPUs'],
    [amountText('memory', 2 ** 32), '4 GiB'],
    [amountText('hugepages-2Mi', 2 ** 21), '2 MiB'],
    [amountText('example.com/vf', 1), '1 device'],
  ] as const)
    it(expected, () => assert.equal(text, expected));

  it('of bytes are in the largest unit, with a decimal below ten', () => {
    const amounts = [0, 1023, 1536, 10.6 * 1024, 2 ** 40 * 5000];
    assert.deepEqual(amounts.map(bytesText), ['0 B', '1023 B', '1.5 KiB', '11 KiB', '5000 TiB']);
  });
});

describe('a bounded map', () => {
  it('drops its oldest entry for a new one, and none for a new value of an entry', () => {
    const map = new BoundedMap<string, number>(2).set('a', 1).set('b', 2).set('a', 3);
    assert.deepEqual(Object.fromEntries(map), { a: 3, b: 2 });
    assert.deepEqual([...map.set('c', 4).keys()], ['b', 'c']);
  });

  it('creates a missing value once', () => {
    const map = new BoundedMap<string, number>(2);
    let created = 0;
    const create = () => ++created;
    assert.deepEqual([map.getOrCreate('a', create), map.getOrCreate('a', create), created], [1, 1, 1]);
  });
});

describe('errors', () => {
  it('quote text in one short line', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (text) => {
        const quoted = quote(text);
        // Each character is escaped to at most six.
        assert.ok(quoted.length <= 80 * 6 + 3);
        assert.doesNotMatch(quoted, /[\n\r\0]/);
      }),
    );
    assert.equal(quote('a\nb'), '"a\\nb"');
    assert.ok(quote('x'.repeat(81)).endsWith('"…'));
  });

  it('keep whole characters of a text that they shorten', () => {
    const cuts = ['abcd', 'abcde', '', 'ab😀cd', 'a😀bcd'].map((text) => cut(text, 4));
    assert.deepEqual(cuts, ['abcd', 'abc…', '', 'ab…', 'a😀…']);
    // The first and the last high surrogate, and their neighbours.
    const units = [0xd7ff, 0xd800, 0xdbff, 0xdc00].map((unit) => cut(`ab${String.fromCharCode(unit)}cde`, 4));
    assert.deepEqual(
      units.map(({ length }) => length),
      [4, 3, 3, 4],
    );
  });

  it('name the first three invalid places, without texts of the writer that a terminal may interpret', () => {
    const text = (schema: z.ZodType, value: unknown) => issuesText(schema.safeParse(value).error!);
    const four = z.object({ a: z.object({ b: z.number() }), c: z.number(), d: z.number(), e: z.number() });
    const places = (...names: string[]) => names.map((name) => `${name}: expected number, received string`).join('; ');
    assert.equal(text(z.number(), 'x'), places('the whole'));
    assert.equal(text(four, { a: { b: '' }, c: '', d: '', e: '' }), places('a.b', 'c', 'd'));
    const keys = { ['k'.repeat(81)]: '', '\u001b[2J': '', '\ud800': '' };
    assert.equal(text(z.record(z.string(), z.number()), keys), places('*', '*', '*'));
  });
});

describe('decoded JSON', () => {
  it('is an object, or neither a list, null nor a plain value; malformed text is undefined', () => {
    assert.deepEqual(['{}', '[]', 'null', '1', '"x"'].map(parseJson).map(isObject), [true, false, false, false, false]);
    assert.equal(parseJson('{'), undefined);
    assert.equal(
      resultOrNone(() => 1),
      1,
    );
  });
});

describe('lists', () => {
  it('are grouped in the order of their items, by any key', () => {
    const groups = groupBy(['b1', '__proto__', 'a1', 'b2'], (name) => name.replace(/\d/, ''));
    assert.deepEqual([...groups].map(String), ['b,b1,b2', '__proto__,__proto__', 'a,a1']);
  });

  it('by name: worker-2 is before worker-10, as people sort; by text: by code units', () => {
    const sorted = ['a', 'worker', 'worker-1.rack-2', 'worker-1.rack-12', 'worker-2', 'worker-10'];
    assert.deepEqual(sorted.toReversed().sort(byName(String)), sorted);
    const byUnits = ['Z', 'a', 'a', 'worker-10', 'worker-2'];
    assert.deepEqual(byUnits.toReversed().sort(byText(String)), byUnits);
  });
});

describe('managed fields', () => {
  for (const [what, fieldsV1, isOwner] of [
    ['the field', { 'f:spec': { 'f:renewTime': {} } }, true],
    ['another field', { 'f:spec': { 'f:holderIdentity': {} } }, false],
    ['a field of the same name elsewhere', { 'f:renewTime': {} }, false],
    ['a list instead of fields', { 'f:spec': [] }, false],
    ['nothing', undefined, false],
  ] as const)
    it(`of ${what}: the manager ${isOwner ? 'owns' : 'does not own'} it`, () =>
      assert.equal(ownsField({ manager: 'm', fieldsV1 }, ['spec', 'renewTime']), isOwner));
});

describe('quantities of Kubernetes', () => {
  for (const [text, whole, milli] of [
    ['9', 9, 9000],
    ['9000m', 9, 9000],
    ['9e0', 9, 9000],
    ['0.009k', 9, 9000],
    ['.5', 1, 500],
    ['5e-1', 1, 500],
    ['1.0001', 2, 1001],
    ['-1', -1, -1000],
    ['1n', 1, 1],
    ['2k', 2000, 2_000_000],
    ['1M', 1e6, 1e9],
    ['1Ki', 1024, 1_024_000],
    ['1436Mi', 1436 * 2 ** 20, 1436 * 2 ** 20 * 1000],
    ['1E', 1e18, 1e21],
    ['1e-3', 1, 1],
    // The greatest length, and the greatest exponent.
    ['1'.padStart(64, '0'), 1, 1000],
    ['0.1e19', 1e18, 1e21],
  ] as const) {
    it(`${text}: ${whole} whole units, ${milli} thousandths, both rounded up`, () =>
      assert.deepEqual([wholeValue(parseQuantity(text)), milliValue(parseQuantity(text))], [whole, milli]));
  }

  for (const text of ['', 'nine', '1x', '9mm', '1 Gi', '0x1', '1e', '1Kie3', 'Infinity'])
    it(`"${text}" is refused`, () => assert.throws(() => parseQuantity(text), { name: 'ParseError' }));

  for (const text of ['9'.repeat(1_000_000), '1'.padStart(65, '0'), '1e99', '1e19', '0.1e20'])
    it(`"${text.slice(0, 9)}" is too large`, () =>
      assert.throws(() => parseQuantity(text), { name: 'ParseError', message: /: the amount is too large$/ }));

  it('are CPUs of the static CPU manager only if they are whole', () => {
    for (const text of ['9', '9000m', '9e0', '0.9e1', '9.000', '8999999999n'])
      assert.equal(integralCpus(text), 9, text);
    for (const text of ['9001m', '0.5', '200m']) assert.equal(integralCpus(text), undefined, text);
  });
});
