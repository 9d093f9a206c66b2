import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  ALL,
  briefMask,
  type CpuMask,
  checkCount,
  checkHost,
  entryOf,
  formatMask,
  MAX_MASK_CHARACTERS,
  maskForHost,
  parseMask,
  pinsNothing,
  summaryOf,
} from '../../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { ParseError } from '../../../model/errors.ts';
import { leastProcessorTime } from '../../support/processor-time.ts';

const set = (text: string) => CpuSet.parse(text);
const range = (last: number) => CpuSet.range(0, last);
const repeated = (entry: string, count: number, more: readonly string[] = []) =>
  [...Array.from({ length: count }, () => entry), ...more].join(':');

const entry = fc.oneof(
  fc.constant('all' as const),
  fc.uniqueArray(fc.nat(300), { minLength: 1, maxLength: 12 }).map((ids) => CpuSet.of(ids)),
);
const masks: fc.Arbitrary<CpuMask> = fc.array(entry, { maxLength: 16 }).map((entries) => ({ entries }));

/** Ganeti's own cases are in ganeti-cpumask-cases.json. */
describe('CPU masks', () => {
  for (const [text, canonical] of [
    ['', ''],
    ['0,1,2:all:8,4,6-7', '0-2:all:4,6-8'],
  ] as const) {
    it(`M6: ${JSON.stringify(text)} is ${JSON.stringify(canonical)} in canonical form`, () =>
      assert.equal(formatMask(parseMask(text)), canonical));
  }

  it('M6: come back from their text', () => {
    fc.assert(
      fc.property(masks, (mask: CpuMask) =>
        assert.deepEqual(formatMask(parseMask(formatMask(mask))), formatMask(mask)),
      ),
    );
  });

  for (const [what, text, says] of [
    ['an empty entry', '1:', /entry 2 \(for vCPU 1\) is empty; write "all"/],
    ['all in a list', 'all,1', /"all"/],
    ['digits that are not ASCII', '٣', /CPU ids and ranges/],
    ['a CPU beyond any host', '0-65536', /CPU ids end at 65535/],
    ['4,097 entries', repeated('1', 4097), /it has more than 4096 entries$/],
    ['16,385 characters', '1'.padStart(MAX_MASK_CHARACTERS + 1, '0'), /it is longer than 16384 characters$/],
    [
      'wide entries that would need ten megabytes',
      Array.from({ length: 1300 }, (_, first) => `${first}-65535`).join(':'),
      /too many different entries/,
    ],
  ] as const) {
    it(`M1: are refused at once and in a short message: ${what}`, () => {
      const spent = leastProcessorTime(() => {
        assert.throws(
          () => parseMask(text),
          (error) => error instanceof ParseError && says.test(error.message) && error.message.length < 600,
        );
      }, 2);
      assert.ok(spent < 100, `${spent} ms`);
    });
  }

  it('have up to 4096 entries and 16384 characters', () => {
    assert.equal(parseMask(repeated('1', 4096)).entries.length, 4096);
    assert.equal(parseMask('1'.padStart(MAX_MASK_CHARACTERS, '0')).entries.length, 1);
  });

  it('M2: one entry applies to every vCPU, and an empty mask and all restrict no vCPU', () => {
    assert.equal(String(entryOf(parseMask('2-3'), 7)), '2-3');
    assert.equal(entryOf(parseMask('1:3'), 2), undefined);
    assert.equal(entryOf(parseMask(''), 5), 'all');
    for (const text of ['', 'all', 'all:all']) assert.ok(pinsNothing(parseMask(text)), text);
    assert.ok(!pinsNothing(parseMask('1:all')));
  });
});

describe('a mask in a message', () => {
  const evens = Array.from({ length: 40 }, (_, i) => 2000 + 2 * i).join(',');
  for (const [what, mask, brief] of [
    ['is cut after 80 characters', repeated('100', 21), `${repeated('100', 20)}:… (21 entries)`],
    ['is cut in its only entry', evens, '2000,2002,2004,2006,2008,2010,2012,2014,2016,2018,2020,2022,… (40 CPUs)'],
  ] as const)
    it(what, () => assert.equal(briefMask(parseMask(mask)), brief));
});

describe('the check of a mask', () => {
  for (const [mask, vcpus, fits] of [
    ['', 3, true],
    ['0:1', 3, false],
  ] as const) {
    it(`M3: ${JSON.stringify(mask)} ${fits ? 'fits' : 'does not fit'} ${vcpus} vCPUs`, () => {
      const fault = checkCount(parseMask(mask), vcpus) ?? 'fits';
      assert.match(fault, fits ? /^fits$/ : /has entries for 2 vCPUs, but the VM has 3/);
    });
  }

  it('M3: uses online CPU ids, not their count', () => {
    const gaps = set('0-2,7');
    assert.equal(checkHost(parseMask('7'), gaps), undefined);
    const fault = checkHost(parseMask('0-3:all'), gaps);
    assert.match(fault ?? '', /names CPU 3, which is not online on this host \(it has 0-2,7\)/);
    assert.equal(checkHost(parseMask('all'), CpuSet.EMPTY), undefined);
    assert.match(checkHost(parseMask('0'), CpuSet.EMPTY) ?? '', /names CPU 0/);
    assert.equal(summaryOf(parseMask('1:all:200')).cpus.toString(), '1,200');
  });

  it('M5: falls back to all on a host that is too small only on request', () => {
    const mask = parseMask('0:4');
    assert.deepEqual(maskForHost(mask, range(7), true), { mask, fellBack: false });
    assert.deepEqual(maskForHost(mask, range(3), true), { mask: ALL, fellBack: true });
    const refused = maskForHost(mask, range(3), false);
    assert.ok('fault' in refused && refused.fault.includes('names CPU 4'));
  });
});
