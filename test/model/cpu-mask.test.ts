import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { hexMask, MaskFormError, toLxc, toTaskset, toXen } from '../../model/cpu-mask/convert.ts';
import { overlaps, planPins } from '../../model/cpu-mask/host-pins.ts';
import {
  ALL,
  briefMask,
  type CpuMask,
  checkCount,
  checkHost,
  entryOf,
  formatMask,
  maskForHost,
  parseMask,
  pinsNothing,
  summaryOf,
} from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';
import { processorTime } from '../support/processor-time.ts';
import { run as runGaneti } from '../vectors/ganeti-cpumask.ts';

const set = (text: string) => CpuSet.parse(text);
const range = (last: number) => CpuSet.range(0, last);
const entry = fc.oneof(
  fc.constant('all' as const),
  fc.uniqueArray(fc.nat(300), { minLength: 1, maxLength: 12 }).map((ids) => CpuSet.of(ids)),
);
const masks: fc.Arbitrary<CpuMask> = fc.array(entry, { maxLength: 16 }).map((entries) => ({ entries }));

/** Pins as text, or the code of the refusal. */
function plan(mask: string, indexes: readonly number[], vcpus: number, allowed: CpuSet): string[] | string {
  const answer = planPins(parseMask(mask), indexes, vcpus, allowed);
  return answer.kind === 'pin' ? answer.pins.map(({ vcpu, cpus }) => `${vcpu}: ${cpus}`) : answer.code;
}

describe('CPU masks', () => {
  it('M1: are as Ganeti reads them, except for the listed stricter cases', () => {
    const cases: unknown = JSON.parse(
      readFileSync(join(import.meta.dirname, '../vectors/ganeti-cpumask-cases.json'), 'utf8'),
    );
    const outcome = runGaneti(cases, () => undefined);
    assert.deepEqual(outcome.failures, []);
    assert.ok(outcome.ran >= 75);
  });

  for (const [text, canonical] of [
    ['', ''],
    ['all', 'all'],
    ['0', '0'],
    ['0,1,2:all:8,4,6-7', '0-2:all:4,6-8'],
    ['1:1', '1:1'],
    ['all:all', 'all:all'],
    ['007', '7'],
    ['5-5', '5'],
    ['65535', '65535'],
  ] as const) {
    it(`M6: ${JSON.stringify(text)} is ${JSON.stringify(canonical)} in canonical form`, () => {
      assert.equal(formatMask(parseMask(text)), canonical);
    });
  }

  it('M6: come back from their text', () => {
    fc.assert(
      fc.property(masks, (mask) => assert.deepEqual(formatMask(parseMask(formatMask(mask))), formatMask(mask))),
    );
  });

  for (const [text, says] of [
    ['1:', /entry 2 \(for vCPU 1\) is empty; write "all"/],
    [':', /entry 1 \(for vCPU 0\) is empty/],
    ['1::2', /entry 2 \(for vCPU 1\) is empty/],
    ['0-1-2', /CPU ids and ranges/],
    ['2-1', /runs backwards/],
    ['ALL', /"all"/],
    ['all,1', /"all"/],
    ['1, 2', /CPU ids and ranges/],
    ['+1', /CPU ids and ranges/],
    ['1_0', /CPU ids and ranges/],
    ['٣', /CPU ids and ranges/],
    ['0-65536', /CPU ids end at 65535/],
  ] as const) {
    it(`M1: ${JSON.stringify(text)} is refused with ${says}`, () => {
      assert.throws(
        () => parseMask(text),
        (error) => error instanceof ParseError && says.test(error.message),
      );
    });
  }

  it('M1: 0-999999999 and endless text are refused before expansion', () => {
    const before = process.memoryUsage().arrayBuffers;
    const spent = processorTime(() => {
      for (let i = 0; i < 1000; i++) assert.throws(() => parseMask('0-999999999'), ParseError);
    });
    // To expand a billion ids even once would take seconds.
    assert.ok(spent < 3000, `${spent} ms`);
    assert.throws(() => parseMask(`0-${'9'.repeat(60_000)}`), ParseError);
    assert.throws(() => parseMask('65535:'.repeat(1_000_000)), ParseError);
    assert.throws(() => parseMask('0:'.repeat(5000)), /more than 4096 entries/);
    assert.ok(process.memoryUsage().arrayBuffers - before < 1_000_000);
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
  const repeated = (entry: string, count: number, more: readonly string[] = []) =>
    [...Array.from({ length: count }, () => entry), ...more].join(':');
  const eighty = repeated('100', 19, ['1000']);
  for (const [what, mask, brief] of [
    ['is complete up to 80 characters', eighty, eighty],
    ['is cut after 80 characters', repeated('100', 21), `${repeated('100', 20)}:… (21 entries)`],
    ['is cut if one entry is too many', `${eighty}:1`, `${eighty}… (21 entries)`],
    [
      'is cut in its only entry',
      Array.from({ length: 40 }, (_, i) => 2000 + 2 * i).join(','),
      '2000,2002,2004,2006,2008,2010,2012,2014,2016,2018,2020,2022,… (40 CPUs)',
    ],
  ] as const)
    it(what, () => assert.equal(briefMask(parseMask(mask)), brief));

  it('has up to 4096 entries and 16384 characters', () => {
    assert.equal(parseMask(repeated('1', 4096)).entries.length, 4096);
    assert.throws(() => parseMask(repeated('1', 4097)), { message: /it has more than 4096 entries$/ });
    assert.equal(parseMask('1'.padStart(16_384, '0')).entries.length, 1);
    assert.throws(() => parseMask('1'.padStart(16_385, '0')), { message: /it is longer than 16384 characters$/ });
  });
});

describe('the check of a mask', () => {
  for (const [mask, vcpus, code] of [
    ['1:3', 2, undefined],
    ['1-2:all', 2, undefined],
    ['all:1,3-5:0', 3, undefined],
    ['0', 3, undefined],
    ['all', 3, undefined],
    ['', 3, undefined],
    ['0:1', 3, 'count'],
    ['2:1:1:all', 3, 'count'],
  ] as const) {
    it(`M3: ${JSON.stringify(mask)} for ${vcpus} vCPUs: ${code ?? 'fits'}`, () => {
      assert.equal(checkCount(parseMask(mask), vcpus)?.code, code);
    });
  }

  it('M3: uses online CPU ids, not their count', () => {
    const gaps = set('0-2,7');
    assert.equal(checkHost(parseMask('7'), gaps), undefined);
    const fault = checkHost(parseMask('0-3:all'), gaps);
    assert.match(fault?.message ?? '', /names CPU 3, which is not online on this host \(it has 0-2,7\)/);
    assert.equal(checkHost(parseMask('all'), CpuSet.EMPTY), undefined);
    assert.equal(checkHost(parseMask('0'), CpuSet.EMPTY)?.code, 'host-cpus');
    assert.equal(summaryOf(parseMask('1:all:200')).cpus.toString(), '1,200');
  });

  it('M5: falls back to all on a host that is too small only on request', () => {
    const mask = parseMask('0:4');
    assert.deepEqual(maskForHost(mask, range(7), true), { mask, fellBack: false });
    assert.deepEqual(maskForHost(mask, range(3), true), { mask: ALL, fellBack: true });
    const refused = maskForHost(mask, range(3), false);
    assert.ok('fault' in refused && refused.fault.code === 'host-cpus');
  });
});

describe('planned pins', () => {
  const host = range(15);
  for (const [what, mask, indexes, vcpus, allowed, answer] of [
    ['one entry for every thread', '0-1', [0, 1, 2], 3, host, ['0: 0-1', '1: 0-1', '2: 0-1']],
    ['one entry for each, threads in any order', '1:3', [1, 0], 2, host, ['0: 1', '1: 3']],
    ['all in a list means all allowed CPUs', '1-2:all', [0, 1], 2, set('0-3'), ['0: 1-2', '1: 0-3']],
    ['all restricts nothing', 'all', [0, 1], 2, host, []],
    ['CPUs beyond 63', '63:64:200', [0, 1, 2], 3, range(255), ['0: 63', '1: 64', '2: 200']],
    ['M10: limited to the allowed CPUs', '0-7', [0], 1, set('4-9'), ['0: 4-7']],
    ['M10: no CPU left', '0-7:0', [0, 1], 2, set('4-9'), 'empty'],
    ['M4: too few threads', '1:3', [0], 2, host, 'threads'],
    ['M4: too many threads', '1:3', [0, 1, 2], 2, host, 'threads'],
    ['M4: a gap in the indexes', '1:3', [0, 2], 2, host, 'threads'],
    ['M4: one index twice', '1:3', [0, 0], 2, host, 'threads'],
    ['M4: no threads', 'all', [], 2, host, 'threads'],
    ['M4: entries for other vCPUs', '1:3:5', [0, 1], 2, host, 'count'],
  ] as const) {
    it(`${what}: ${Array.isArray(answer) ? answer.join('; ') || 'no pins' : answer}`, () => {
      assert.deepEqual(plan(mask, indexes, vcpus, allowed), answer);
    });
  }

  it('M10: stay within the allowed CPUs, for all vCPUs or none', () => {
    fc.assert(
      fc.property(masks, fc.nat(16), fc.uniqueArray(fc.nat(300)), (mask, vcpus, ids) => {
        const allowed = CpuSet.of(ids);
        const answer = planPins(
          mask,
          Array.from({ length: vcpus }, (_, i) => i),
          vcpus,
          allowed,
        );
        if (answer.kind === 'refused') return;
        assert.ok(answer.pins.length === vcpus || (answer.pins.length === 0 && pinsNothing(mask)) || vcpus === 0);
        for (const { cpus } of answer.pins) assert.ok(!cpus.isEmpty && cpus.isSubsetOf(allowed));
      }),
    );
  });

  it('M6: overlap between VMs is reported once for each pair', () => {
    const found = overlaps([
      { vm: 'a', cpus: set('0-3') },
      { vm: 'b', cpus: set('3-4') },
      { vm: 'c', cpus: set('4,8') },
    ]);
    assert.deepEqual(
      found.map(({ a, b, cpus }) => `${a} ${b} ${cpus}`),
      ['a b 3', 'b c 4'],
    );
  });
});

describe('masks in other formats', () => {
  for (const [cpus, hex] of [
    ['1,3', '0x0000000A'],
    ['', '0x00000000'],
    ['31', '0x80000000'],
    ['32', '0x0000000100000000'],
    ['63-64', '0x000000018000000000000000'],
  ] as const) {
    it(`M7: CPUs ${cpus || 'none'} are ${hex}`, () => {
      assert.equal(hexMask(set(cpus)), hex);
      assert.equal(CpuSet.fromMask(hex).toString(), cpus);
    });
  }

  it('M7: taskset gets one mask for each vCPU', () => {
    assert.deepEqual(toTaskset(parseMask('1,3'), 2, range(3)), ['0x0000000A', '0x0000000A']);
    assert.deepEqual(toTaskset(parseMask('0:all'), 2, range(3)), ['0x00000001', '0x0000000F']);
    assert.equal(toTaskset(parseMask('all'), 1, range(127))[0], `0x${'F'.repeat(32)}`);
    assert.throws(() => toTaskset(parseMask('0:1'), 3, range(3)), MaskFormError);
  });

  for (const [mask, xen] of [
    ['1:2,4-7:0-1', 'cpus = [ "1", "2,4-7", "0-1" ]'],
    ['2-3', 'cpus = "2-3"'],
    ['1:all', 'cpus = [ "1", "all" ]'],
    ['all', undefined],
    ['all:all', undefined],
    ['', undefined],
  ] as const) {
    it(`M7: Xen’s form of ${JSON.stringify(mask)} is ${xen ?? 'no entry'}`, () =>
      assert.equal(toXen(parseMask(mask)), xen));
  }

  it('M7: LXC gets one list with as many CPUs as vCPUs', () => {
    assert.equal(toLxc(parseMask('2,1'), 2), '1-2');
    assert.equal(toLxc(parseMask('all'), 2), undefined);
    for (const [mask, vcpus] of [
      ['0', 2],
      ['0-3', 2],
      ['0:1', 2],
      ['0-1:2-3', 2],
      ['1,1', 2],
      ['0:all', 2],
    ] as const) {
      assert.throws(() => toLxc(parseMask(mask), vcpus), MaskFormError, mask);
    }
  });
});
