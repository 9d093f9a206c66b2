import assert from 'node:assert/strict';
import { briefMask, formatMask, MAX_MASK_CHARACTERS, parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet, MAX_LIST_CHARACTERS } from '../../model/cpu-set.ts';
import { ParseError, PlumblineError } from '../../model/errors.ts';
import type { HostReport } from '../../model/kubelet/report.ts';
import { maskRefusals, maskRequestKey, maskRequestOf } from '../../model/launcher/mask-request.ts';
import { fitMask } from '../../model/placement/mask-fit.ts';
import { preparedHost } from '../../model/placement/needs.ts';
import { createRandom } from '../lab/random.ts';
import { collectGarbage } from '../support/garbage.ts';
import { leastProcessorTime } from '../support/processor-time.ts';

/** Milliseconds of CPU time within which invalid input is refused. */
const REFUSED_WITHIN = 100;
/** Maximum characters of a message. */
const MAX_MESSAGE_CHARACTERS = 600;

function refusalOf(work: () => unknown, type: new (...args: never[]) => Error): string {
  let message = '';
  const spent = leastProcessorTime(() => {
    assert.throws(work, (error: unknown) => {
      assert.ok(error instanceof type, String(error));
      message = error.message;
      return true;
    });
  }, 2);
  assert.ok(spent < REFUSED_WITHIN, `${spent} ms`);
  assert.ok(message.length < MAX_MESSAGE_CHARACTERS, `a message of ${message.length} characters`);
  return message;
}

const report = (parts: Partial<HostReport>): HostReport => ({
  kubeletVersion: 'v1.36.2',
  cells: [{ id: 0, cpus: '0-7' }],
  cores: ['0-1', '2-3', '4-5', '6-7'],
  reserved: '0-1',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  topologyManager: { policy: 'best-effort', scope: 'container' },
  assignments: [],
  ...parts,
});

describe('bounds: CPU masks', () => {
  it('4,096 entries of 0-65535 are refused by their length', () => {
    const text = Array.from({ length: 4096 }, () => '0-65535').join(':');
    assert.match(
      refusalOf(() => parseMask(text), ParseError),
      /longer than 16384 characters/,
    );
  });

  it('a mask that needs ten megabytes as sets is refused', () => {
    const text = Array.from({ length: 1300 }, (_, first) => `${first}-65535`)
      .join(':')
      .slice(0, MAX_MASK_CHARACTERS)
      .replace(/:[^:]*$/, '');
    assert.match(
      refusalOf(() => parseMask(text), ParseError),
      /too many different entries/,
    );
  });

  /** The maximum number of different wide entries. */
  const wide = Array.from({ length: 1000 }, (_, first) => `${first}-1023`).join(':');

  it('the widest accepted mask is read, written, shortened and refused within the limit', () => {
    const online = CpuSet.parse('0-7');
    let text = '';
    const spent = leastProcessorTime(() => {
      const mask = parseMask(wide);
      assert.equal(formatMask(mask), wide);
      assert.ok(briefMask(mask).length < 120);
      const fit = fitMask({ mask, fixMismatch: false }, { online, usable: online });
      text = fit.fits ? '' : fit.text;
    });
    assert.ok(spent < REFUSED_WITHIN, `${spent} ms`);
    assert.match(text, /^the CPU mask 0-1023:.* entries\) names CPU 8-1023, which is not online/);
    assert.ok(text.length < MAX_MESSAGE_CHARACTERS, `a text of ${text.length} characters`);
  });

  it('a mask that does not match its VM is not printed in full', () => {
    const metadata = { labels: undefined, annotations: { 'plumbline.dev/cpu-mask': wide } };
    for (const dedicatedCpuPlacement of [true, false]) {
      const [refusal = ''] = maskRefusals({
        metadata,
        spec: { domain: { cpu: { cores: 2, dedicatedCpuPlacement } } },
        vcpusUnknown: false,
      } as never);
      assert.ok(refusal.length > 0 && refusal.length < MAX_MESSAGE_CHARACTERS, `${refusal.length} characters`);
    }
  });

  it('the CPUs of a mask are added up once for thousands of nodes', () => {
    const mask = parseMask(wide);
    const online = CpuSet.parse('0-127');
    fitMask({ mask, fixMismatch: false }, { online, usable: online });
    const spent = leastProcessorTime(() => {
      for (let node = 0; node < 5000; node++) fitMask({ mask, fixMismatch: false }, { online, usable: online });
    });
    assert.ok(spent < 1000, `${spent} ms for 5,000 nodes`);
  });

  it('thousands of VMs with masks use only the memory of their text', () => {
    const wishes = Array.from({ length: 400 }, (_, i) =>
      maskRequestOf({ annotations: { 'plumbline.dev/cpu-mask': `${i}:${wide}` } }),
    );
    collectGarbage();
    const before = process.memoryUsage();
    const more = Array.from({ length: 400 }, (_, i) =>
      maskRequestOf({ annotations: { 'plumbline.dev/cpu-mask': `${i + 400}:${wide}` } }),
    );
    collectGarbage();
    const after = process.memoryUsage();
    const each = (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / more.length;
    assert.ok(each < 40_000, `${each} bytes each`);
    const spent = leastProcessorTime(() => {
      for (const wish of [...wishes, ...more]) for (let node = 0; node < 50; node++) maskRequestKey(wish!);
    });
    assert.ok(spent < 200, `${spent} ms for the keys of 800 masks on 50 nodes`);
  });
});

describe('bounds: CPU lists', () => {
  it('a list beyond the maximum length is refused unread', () => {
    assert.match(
      refusalOf(() => CpuSet.parse('0,'.repeat(MAX_LIST_CHARACTERS)), ParseError),
      /is longer than/,
    );
  });
  it('a set of many ranges is shortened in messages', () => {
    const set = CpuSet.of(Array.from({ length: 4000 }, (_, i) => i * 2));
    assert.match(set.brief, /^0,2,4,6,8,10,12,14,16,18,20,22,… \(4000 CPUs\)$/);
    assert.equal(CpuSet.EMPTY.brief, 'none');
    assert.equal(CpuSet.parse('0-3,8').brief, '0-3,8');
  });
  it('many overlapping ranges give the same set in either way of reading', () => {
    const random = createRandom(7);
    for (const length of [60, 65, 200, 3000]) {
      const ranges = Array.from({ length }, () => {
        const first = random.below(65_536);
        return [first, Math.min(65_535, first + random.below(40))] as const;
      });
      const members = new Set(
        ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i)),
      );
      const read = CpuSet.parse(ranges.map(([first, last]) => `${first}-${last}`).join(','));
      assert.ok(read.equals(CpuSet.of(members)), `${length} ranges`);
    }
  });

  it('many ranges with a high id cost little more than few', () => {
    const few = `${'0,'.repeat(60)}65535`;
    const many = `${'0,'.repeat(70)}65535`;
    const read = (text: string) => () => {
      for (let i = 0; i < 500; i++) CpuSet.parse(text);
    };
    const [short, long] = [leastProcessorTime(read(few), 5), leastProcessorTime(read(many), 5)];
    assert.ok(long < 6 * Math.max(short, 1), `${long} ms for ${short} ms`);
  });

  it('ranges are joined across word boundaries', () => {
    for (const text of ['0-31', '0-32', '31-32', '0,2,31-64,66', '63', '64', '0-65535', '1-65534', '32-63,65'])
      assert.equal(CpuSet.parse(text).toString(), text);
  });
});

describe('bounds: reports', () => {
  const cases: [string, Partial<HostReport>, RegExp][] = [
    [
      '400 overlapping cores of 65,536 CPUs',
      { cells: [{ id: 0, cpus: '0-65535' }], cores: Array.from({ length: 400 }, () => '0-65535') },
      /CPU ids end at 8191/,
    ],
    [
      '8,192 cores of the same CPUs',
      { cells: [{ id: 0, cpus: '0-7' }], cores: Array.from({ length: 8192 }, () => '0-7') },
      /8192 cores: a host has at most 2048/,
    ],
    ['one core of 1,024 CPUs', { cells: [{ id: 0, cpus: '0-1023' }], cores: ['0-1023'] }, /has at most 64/],
    ['overlapping NUMA nodes', { cells: [0, 1].map((id) => ({ id, cpus: '0-2047' })) }, /more than 2048 CPUs/],
    ['65 NUMA nodes', { cells: Array.from({ length: 65 }, (_, id) => ({ id, cpus: `${id}` })) }, /at most 64/],
    ['a NUMA node with id 2^31', { cells: [{ id: 2 ** 31, cpus: '0-7' }] }, /ids end at 1023/],
    ['overlapping sockets', { sockets: Array.from({ length: 128 }, (_, id) => ({ id, cpus: '0-2047' })) }, /2048/],
    ['a reserved CPU that does not exist', { reserved: '0-8191' }, /names? CPU 8, which is not online/],
  ];
  for (const [name, parts, message] of cases) {
    it(`${name}: refused before expansion`, () => {
      assert.match(
        refusalOf(() => preparedHost(report(parts)), PlumblineError),
        message,
      );
    });
  }

  it('assignments with long lists in total are refused unread', () => {
    const cpus = `${'0,'.repeat(64)}8191`;
    const assignments = Array.from({ length: 2048 }, (_, i) => ({ podUID: `u${i}`, container: 'c', cpus }));
    assert.match(
      refusalOf(() => preparedHost(report({ assignments })), PlumblineError),
      /the limit is 65536/,
    );
  });

  it('networks on missing NUMA nodes take no memory', () => {
    const physnets = Array.from({ length: 256 }, (_, i) => ({ name: `p${i}`, cells: '0-1023' }));
    const spent = leastProcessorTime(() => preparedHost(report({ physnets })));
    assert.ok(spent < REFUSED_WITHIN, `${spent} ms`);
  });
});
