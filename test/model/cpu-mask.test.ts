import assert from 'node:assert/strict';
import fc from 'fast-check';
import { MaskFormError, toLxc, toTaskset, toXen } from '../../model/cpu-mask/convert.ts';
import { type HostPins, hostPins, overlaps, planPins } from '../../model/cpu-mask/host-pins.ts';
import {
  briefMask,
  type CpuMask,
  checkCount,
  entryOf,
  formatMask,
  maskForHost,
  parseMask,
  pinsNothing,
  summaryOf,
} from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';
import { leastProcessorTime } from '../support/processor-time.ts';

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
  it('M6: come back from their text, in canonical form', () => {
    const canonical = (text: string) => formatMask(parseMask(text));
    assert.deepEqual(['', '0,1,2:all:8,4,6-7'].map(canonical), ['', '0-2:all:4,6-8']);
    fc.assert(fc.property(masks, (mask: CpuMask) => assert.equal(canonical(formatMask(mask)), formatMask(mask))));
  });

  for (const [what, text, says] of [
    ['an empty entry', '1:', /entry 2 \(for vCPU 1\) is empty; write "all"/],
    ['all in a list', 'all,1', /"all"/],
    ['digits that are not ASCII', '٣', /CPU ids and ranges/],
    ['a CPU beyond any host', '0-65536', /CPU ids end at 65535/],
    ['4,097 entries', repeated('1', 4097), /it has more than 4096 entries$/],
    ['16,385 characters', '1'.padStart(16_385, '0'), /it is longer than 16384 characters$/],
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
    assert.equal(parseMask('1'.padStart(16_384, '0')).entries.length, 1);
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
  it('is cut after 80 characters, and in its only entry', () => {
    const brief = (mask: string) => briefMask(parseMask(mask));
    assert.equal(brief(repeated('100', 21)), `${repeated('100', 20)}:… (21 entries)`);
    const evens = Array.from({ length: 40 }, (_, i) => 2000 + 2 * i);
    assert.equal(brief(evens.join(',')), `${evens.slice(0, 12)},… (40 CPUs)`);
  });
});
describe('the check of a mask', () => {
  it('M3: compares the number of its entries with that of vCPUs', () => {
    assert.equal(checkCount(parseMask(''), 3), undefined);
    assert.match(checkCount(parseMask('0:1'), 3) ?? '', /has entries for 2 vCPUs, but the VM has 3/);
  });

  it('M3: uses online CPU ids, not their count', () => {
    const gaps = set('0-2,7');
    const faultOn = (online: CpuSet, mask: string) => {
      const applied = maskForHost(parseMask(mask), online, false);
      return 'fault' in applied ? applied.fault : '';
    };
    assert.equal(faultOn(gaps, '7'), '');
    assert.match(faultOn(gaps, '0-3:all'), /names CPU 3, which is not online on this host \(it has 0-2,7\)/);
    assert.equal(faultOn(CpuSet.EMPTY, 'all'), '');
    assert.match(faultOn(CpuSet.EMPTY, '0'), /names CPU 0/);
    assert.equal(summaryOf(parseMask('1:all:200')).cpus.toString(), '1,200');
  });

  it('M5: falls back to all on a host that is too small only on request', () => {
    const mask = parseMask('0:4');
    assert.deepEqual(maskForHost(mask, range(7), true), { mask, fellBack: false });
    assert.deepEqual(maskForHost(mask, range(3), true), { mask: { entries: ['all'] }, fellBack: true });
    const refused = maskForHost(mask, range(3), false);
    assert.ok('fault' in refused && refused.fault.includes('names CPU 4'));
  });
});

describe('masks in other formats', () => {
  for (const [cpus, hex] of [
    ['1,3', '0x0000000A'],
    ['', '0x00000000'],
    ['31', '0x80000000'],
    ['32', '0x0000000100000000'],
  ] as const) {
    it(`M7: CPUs ${cpus || 'none'} are ${hex}`, () =>
      assert.deepEqual(toTaskset(parseMask('all'), 1, CpuSet.parse(cpus)), [hex]));
  }

  it('M7: taskset gets one mask for each vCPU', () => {
    assert.deepEqual(toTaskset(parseMask('1,3'), 2, range(3)), ['0x0000000A', '0x0000000A']);
    assert.deepEqual(toTaskset(parseMask('0:all'), 2, range(3)), ['0x00000001', '0x0000000F']);
    assert.throws(() => toTaskset(parseMask('0:1'), 3, range(3)), MaskFormError);
  });

  for (const [mask, xen] of [
    ['1:2,4-7:0-1', 'cpus = [ "1", "2,4-7", "0-1" ]'],
    ['2-3', 'cpus = "2-3"'],
    ['1:all', 'cpus = [ "1", "all" ]'],
    ['all:all', undefined],
  ] as const) {
    it(`M7: Xen’s form of ${JSON.stringify(mask)} is ${xen ?? 'no entry'}`, () =>
      assert.equal(toXen(parseMask(mask)), xen));
  }

  it('M7: LXC gets one list with as many CPUs as vCPUs', () => {
    assert.equal(toLxc(parseMask('2,1'), 2), '1-2');
    assert.equal(toLxc(parseMask('all'), 2), undefined);
    for (const mask of ['0', '0-3', '0:1', '0:all'])
      assert.throws(() => toLxc(parseMask(mask), 2), MaskFormError, mask);
  });
});

const counting = (count: number) => Array.from({ length: count }, (_, index) => index);
describe('planned pins', () => {
  const host = CpuSet.range(0, 15);
  for (const [what, mask, indexes, vcpus, allowed, answer] of [
    ['one entry for every thread', '0-1', [0, 1, 2], 3, host, ['0: 0-1', '1: 0-1', '2: 0-1']],
    ['M10: limited to the allowed CPUs', '0-7', [0], 1, set('4-9'), ['0: 4-7']],
    ['M10: no CPU left', '0-7:0', [0, 1], 2, set('4-9'), 'empty'],
    ['M4: too few threads', '1:3', [0], 2, host, 'threads'],
    ['M4: a gap in the indexes', '1:3', [0, 2], 2, host, 'threads'],
    ['M4: entries for other vCPUs', '1:3:5', [0, 1], 2, host, 'count'],
  ] as const) {
    it(`${what}: ${Array.isArray(answer) ? answer.join('; ') || 'no pins' : answer}`, () => {
      const plan = planPins(parseMask(mask), indexes, vcpus, allowed);
      assert.deepEqual(plan.kind === 'pin' ? plan.pins.map(({ vcpu, cpus }) => `${vcpu}: ${cpus}`) : plan.code, answer);
    });
  }

  it('M6: overlap between VMs is reported once for each pair', () => {
    const vms = Object.entries({ a: '0-3', b: '3-4', c: '4,8' }).map(([vm, cpus]) => ({ vm, cpus: set(cpus) }));
    const pairs = overlaps(vms);
    assert.equal(pairs.map(({ a, b, cpus }) => `${a} ${b} ${cpus}`).join(), 'a b 3,b c 4');
  });
});
describe('pins on a host', () => {
  const cpus = { online: set('0-7'), container: set('0-5'), withheld: set('0,4') };
  const vm = { fixMismatch: false, indexes: [0, 1], ...cpus, mayBePlugged: false };
  const on = (mask: string, more: Partial<Parameters<typeof hostPins>[0]> = {}) =>
    hostPins({ ...vm, ...more, mask: parseMask(mask) });
  const answerOf = (pins: HostPins) =>
    pins.kind === 'pin' ? pins.pins.map(({ vcpu, cpus }) => `${vcpu}: ${cpus}`) : pins.reason;

  for (const [what, mask, more, answer] of [
    ['a list for the VM, without withheld CPUs', '0-7', {}, ['0: 1-3,5', '1: 1-3,5']],
    ['a CPU of another container', '1:6', {}, 'Empty'],
    ['a CPU that is not online', '1:8', {}, 'HostCPUs'],
    ['a CPU that is not online, to be fixed', '1:8', { fixMismatch: true }, []],
    ['a thread without its predecessor', '1', { indexes: [0, 2] }, 'Threads'],
    ['a gap after a migration', '1:2', { indexes: [0, 2], mayBePlugged: true }, 'Threads'],
  ] as const) {
    it(`${what}: ${answer}`, () => assert.deepEqual(answerOf(on(mask, more)), answer));
  }

  const counts: [what: string, mask: string, vcpus: number, pins: string[], message: RegExp | undefined][] = [
    ['as many vCPUs', '1:3', 2, ['0: 1', '1: 3'], undefined],
    [
      'more vCPUs',
      '1:3',
      4,
      ['0: 1', '1: 3', '2: 1-3,5', '3: 1-3,5'],
      /entries for 2 vCPUs, and the VM has 4: the others run on any of its CPUs/,
    ],
    ['fewer vCPUs', '1:2:3', 2, ['0: 1', '1: 2'], /entries for 3 vCPUs, and the VM has 2: the other entries wait/],
    // The entry that names a reserved CPU waits for its vCPU, and only then refuses the VM.
    ['one vCPU', '1:0', 1, ['0: 1'], /the other entries wait/],
  ];
  for (const [what, mask, vcpus, pins, message] of counts) {
    it(`after a migration, ${what}: ${pins.join('; ')}`, () => {
      const answer = on(mask, { indexes: counting(vcpus), mayBePlugged: true });
      assert.ok(answer.kind === 'pin');
      assert.deepEqual(answerOf(answer), pins);
      if (message === undefined) assert.equal(answer.otherCount, undefined);
      else assert.match(answer.otherCount?.message ?? '', message);
      assert.equal(answer.otherCount?.waits ?? false, mask.split(':').length > vcpus);
    });
  }
});
