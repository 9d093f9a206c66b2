import assert from 'node:assert/strict';
import * as z from 'zod';
import { toTaskset } from '../../model/cpu-mask/convert.ts';
import { hostPins } from '../../model/cpu-mask/host-pins.ts';
import { briefMask, parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { cut, few, ParseError } from '../../model/errors.ts';
import { createHost, HostError, wholeCoresTouching, wholeCoresWithin } from '../../model/host.ts';
import { describeSysfs } from '../../model/host-sysfs.ts';
import { AgentHealth } from '../../model/lease/agent-health.ts';
import { renewalWriter, renewalWriters } from '../../model/lease/diagnose.ts';
import { describeLease, renewalsBeyondRestarts } from '../../model/lease/observer.ts';
import { leaseForm, repairLease } from '../../model/lease/repair.ts';
import { formatMicroTime, nextRenewTime, parseMicroTime } from '../../model/lease/timing.ts';
import { physnetOfResource, physnetResource } from '../../model/names.ts';
import { checkReport, faultOfError, outliers } from '../../model/report/check.ts';
import { describeHost } from '../support/describe-host.ts';

const set = (text: string) => CpuSet.parse(text);

describe('shortened texts', () => {
  it('keep whole characters within the limit', () => {
    assert.deepEqual([cut('abcd', 4), cut('abcde', 4), cut('abcdef', 4), cut('', 4)], ['abcd', 'abc…', 'abc…', '']);
    assert.equal(cut('ab😀cd', 4), 'ab…');
    assert.equal(cut('a😀bcd', 4), 'a😀…');
    // The first and the last high surrogate, and their neighbours.
    assert.deepEqual(
      [0xd7ff, 0xd800, 0xdbff, 0xdc00].map((unit) => cut(`ab${String.fromCharCode(unit)}cde`, 4).length),
      [4, 3, 3, 4],
    );
  });
  it('list a few items and the number of others', () => {
    assert.deepEqual(few(['a', 'b'], 2, 9), ['a', 'b']);
    assert.deepEqual(few(['a', 'bbbb', 'c', 'd'], 2, 3), ['a', 'bb…', 'and 2 more']);
  });
});

describe('reports of agents are current', () => {
  const lease = (renewTime: string | undefined, duration: number | undefined = 40) => ({
    node: 'n1',
    renewTime,
    duration,
  });
  const stale = (health: AgentHealth, now: number, heard: number | undefined = now) => [...health.stale(now, heard)];

  it('for the duration that the Lease had at its renewal', () => {
    const health = new AgentHealth();
    assert.deepEqual(stale(health, 1000), []);
    health.changed(lease('2026-01-01T00:00:00.000000Z'), 100);
    assert.deepEqual([stale(health, 139.9), stale(health, 140), stale(health, 141)], [[], ['n1'], ['n1']]);
    health.changed(lease('2026-01-01T00:00:10.000000Z'), 110);
    assert.deepEqual([stale(health, 149), stale(health, 150)], [[], ['n1']]);
    // The same renewal is not new; it may shorten the time but not lengthen it.
    health.changed(lease('2026-01-01T00:00:10.000000Z', 60), 130);
    assert.deepEqual([stale(health, 149), stale(health, 150)], [[], ['n1']]);
    health.changed(lease('2026-01-01T00:00:10.000000Z', 20), 130);
    assert.deepEqual([stale(health, 129), stale(health, 130)], [[], ['n1']]);
  });

  it('while the watch is silent', () => {
    const health = new AgentHealth();
    health.changed(lease('2026-01-01T00:00:00.000000Z'), 100);
    assert.deepEqual([stale(health, 200, 139), stale(health, 200, 140)], [[], ['n1']]);
    assert.deepEqual([...health.stale(200, undefined)], []);
    health.changed({ ...lease('2026-01-01T00:00:00.000000Z'), node: 'n2' }, 190);
    assert.deepEqual(stale(health, 200), ['n1']);
    health.forget('n1');
    assert.deepEqual([stale(health, 200), stale(health, 230)], [[], ['n2']]);
  });
});

describe('Leases as texts and numbers', () => {
  const words = (state: string, age?: number) =>
    describeLease({ state, age } as never, { lease: 'ovn-dpu-n1', duration: 60 });
  it('describe a verdict', () => {
    assert.equal(words('alive', 7.9), 'its lease ovn-dpu-n1 was renewed 7 s ago');
    assert.equal(words('alive'), 'its lease ovn-dpu-n1 was renewed 0 s ago');
    assert.equal(words('unproven'), 'its lease ovn-dpu-n1 has no observed renewal yet; check the agent on the DPU');
    assert.equal(
      words('dead', 61.2),
      'its lease ovn-dpu-n1 was last renewed 61 s ago; the limit is 60 s; check the DPU and the agent on it',
    );
    assert.match(words('dead'), /^its lease ovn-dpu-n1 has no observed renewal; the limit is 60 s/);
    assert.equal(words('unknown', 5), 'the API server does not answer, and lease ovn-dpu-n1 was last renewed 5 s ago');
  });

  it('need more renewals than a crash loop gives: back-offs of 10, 20, 40, 80, 160 and 300 s', () => {
    assert.deepEqual(
      [5, 10, 11, 20, 21, 40, 60, 100, 161, 300, 301, 1000].map(renewalsBeyondRestarts),
      [3, 3, 4, 4, 5, 5, 6, 7, 8, 8, 8, 8],
    );
  });

  it('have times in microseconds, even before 1970', () => {
    for (const [micros, text] of [
      [0n, '1970-01-01T00:00:00.000000Z'],
      [-1n, '1969-12-31T23:59:59.999999Z'],
      [-1_000_000n, '1969-12-31T23:59:59.000000Z'],
      [-1_500_000n, '1969-12-31T23:59:58.500000Z'],
      [1_700_000_000_123_456n, '2023-11-14T22:13:20.123456Z'],
    ] as const) {
      assert.equal(formatMicroTime(micros), text);
      assert.equal(parseMicroTime(text), micros);
    }
    assert.equal(parseMicroTime('2026-01-01T00:00:00.000000000+00:00'), parseMicroTime('2026-01-01T00:00:00Z'));
    const at = parseMicroTime('2026-01-01T00:00:00.000005Z')!;
    assert.equal(nextRenewTime('2026-01-01T00:00:00.000005Z', at), '2026-01-01T00:00:00.000006Z');
    assert.equal(nextRenewTime('2026-01-01T00:00:00.000004Z', at), '2026-01-01T00:00:00.000005Z');
    assert.equal(nextRenewTime('2026-01-01T00:00:00.000009Z', at), '2026-01-01T00:00:00.000010Z');
    assert.equal(nextRenewTime('yesterday', at), '2026-01-01T00:00:00.000005Z');
  });

  it('have each field of the owner checked or repaired', () => {
    const subject = { nodeName: 'n1', nodeUid: 'u1', duration: 60 };
    const form = leaseForm(subject);
    const [owner] = form.ownerReferences;
    const faults = (...ownerReferences: object[]) => {
      const { holderIdentity, leaseDurationSeconds } = form;
      const repair = repairLease(
        { metadata: { ownerReferences: ownerReferences as never }, spec: { holderIdentity, leaseDurationSeconds } },
        subject,
      );
      return repair.kind === 'repair' ? repair.faults : repair.kind;
    };
    assert.equal(faults(owner), 'none');
    const { blockOwnerDeletion: _, ...short } = owner;
    assert.equal(faults(short), 'none');
    for (const change of [
      { apiVersion: 'v2' },
      { kind: 'Pod' },
      { name: 'n2' },
      { controller: false },
      { blockOwnerDeletion: true },
    ]) {
      assert.deepEqual(faults({ ...owner, ...change }), ['owner-fields'], JSON.stringify(change));
    }
    assert.deepEqual(faults(), ['no-owner']);
    assert.deepEqual(faults({ ...owner, uid: 'u2' }), ['foreign-owner']);
    assert.deepEqual(faults(owner, { ...owner, uid: 'u2' }), ['foreign-owner']);
    assert.deepEqual(faults(owner, { ...owner, name: 'n2' }), ['foreign-owner']);
  });

  it('name the writer of a renewal', () => {
    const fields = (manager: string, fieldsV1: unknown) => ({ manager, fieldsV1 });
    const renewed = { 'f:spec': { 'f:renewTime': {} } };
    const sample = (...managedFields: object[]) => ({ renewTime: undefined, managedFields });
    const odd = [null, undefined, 7, { 'f:spec': null }, { 'f:spec': 7 }, { 'f:spec': {} }, { 'f:renewTime': {} }];
    const first = sample(...odd.map((one) => fields('odd', one)), fields('b', renewed), fields('c', renewed));
    assert.equal(renewalWriter(first), 'b');
    assert.equal(renewalWriter(sample()), undefined);
    assert.deepEqual(renewalWriters([first, sample(), sample(fields('a', renewed)), first]), ['a', 'b']);
  });
});

describe('an impossible report', () => {
  const host = (online: string, threadsPerCore: number) => ({ online: set(online), threadsPerCore });
  it('is refused with the reason of the parser', () => {
    const { error } = z.object({ other: z.number(), format: z.literal(1, 'has format 9') }).safeParse({ format: 9 });
    assert.deepEqual(faultOfError(error), {
      code: 'unknown-format',
      message: 'the report has format 9: upgrade webhook and extender, then the agents',
    });
    const plain = z.object({ other: z.number() }).safeParse({}).error;
    assert.deepEqual(faultOfError(plain), {
      code: 'contradiction',
      message: 'the report contradicts itself: it cannot be read',
    });
    assert.equal(faultOfError(new HostError('two cores')).message, 'the report contradicts itself: two cores');
    assert.equal(faultOfError(new RangeError('too much')).message, 'the report contradicts itself: too much');
    assert.equal(faultOfError(new TypeError('x')).message, 'the report contradicts itself: it cannot be read');
    assert.equal(faultOfError(undefined).message, 'the report contradicts itself: it cannot be read');
    assert.equal(faultOfError(new RangeError('x'.repeat(300))).message.length, 256);
    const long = z.object({ format: z.literal(1, 'x'.repeat(300)) }).safeParse({}).error;
    assert.equal(faultOfError(long).message.length, 256);
  });

  it('is refused by the capacity and the architecture of its Node', () => {
    assert.equal(checkReport(host('0-7', 2), { cpus: 8, arch: 'amd64' }), undefined);
    assert.equal(checkReport(host('0-7', 2), { cpus: 7 })?.code, 'more-cpus');
    for (const [arch, most] of [
      ['amd64', 2],
      ['arm64', 4],
      ['ppc64le', 8],
      ['riscv64', 4],
      ['s390x', 2],
    ] as const) {
      assert.equal(checkReport(host('0-7', most), { arch }), undefined, arch);
      assert.equal(checkReport(host('0-7', most + 1), { arch })?.code, 'threads-per-core', arch);
    }
    assert.equal(checkReport(host('0-7', 8), {}), undefined);
    assert.equal(checkReport(host('0-7', 8), undefined), undefined);
  });

  it('is refused if all other nodes agree on fewer threads', () => {
    const alone = (...threads: (number | [number, string])[]) => {
      const reports = threads.map((one, i) => {
        const [threadsPerCore, arch] = typeof one === 'number' ? [one, undefined] : one;
        return [`n${i}`, { threadsPerCore, arch }] as const;
      });
      return [...outliers(new Map(reports))].map(([key, { message }]) => `${key}: ${message}`);
    };
    const text =
      'n0: the report has 4 threads per core, all 2 other nodes have 2, and the Node has no label kubernetes.io/arch that explains it';
    assert.deepEqual(alone(4, 2, 2), [text]);
    for (const threads of [[4, 2], [4, 4, 2], [4, 2, 1], [4, 8, 8], [2, 1, 1], [4], [[4, 'arm64'], 2, 2]] as const)
      assert.deepEqual(alone(...(threads as never as number[])), [], JSON.stringify(threads));
    assert.equal(alone([4, 'other'], 2, 2).length, 1);
    assert.equal(alone(3, 2, 2, 2).length, 1);
  });
});

describe('names of networks', () => {
  it('are valid resources up to their limits', () => {
    assert.equal(physnetResource('a'.repeat(63)), `physnet.plumbline.dev/${'a'.repeat(63)}`);
    assert.match(physnetResource('ü'.repeat(15)), /^physnet\.plumbline\.dev\/x--(c3bc){15}$/);
    assert.throws(() => physnetResource('ü'.repeat(16)), RangeError);
    assert.throws(() => physnetResource(''), RangeError);
    assert.equal(physnetOfResource('physnet.plumbline.dev/east'), 'east');
  });
});

describe('a host with a description in any order', () => {
  const shuffled = {
    cells: [
      { id: 1, cpus: '4-7' },
      { id: 0, cpus: '0-3' },
    ],
    cores: ['6-7', '2-3', '4-5', '0-1'],
    sockets: [
      { id: 10, cpus: '4-7' },
      { id: 2, cpus: '0-3' },
    ],
    uncores: [
      { id: 21, cpus: '6-7' },
      { id: 9, cpus: '0-5' },
    ],
  };
  const host = createHost(shuffled);

  it('is sorted', () =>
    assert.deepEqual(describeHost(host), {
      cells: [
        { id: 0, cpus: '0-3' },
        { id: 1, cpus: '4-7' },
      ],
      cores: ['0-1', '2-3', '4-5', '6-7'],
      sockets: [
        { id: 2, cpus: '0-3' },
        { id: 10, cpus: '4-7' },
      ],
      uncores: [
        { id: 9, cpus: '0-5' },
        { id: 21, cpus: '6-7' },
      ],
    }));

  it('has NUMA nodes as default sockets and sockets as default caches', () => {
    const { sockets, uncores } = describeHost(createHost({ cells: shuffled.cells, cores: shuffled.cores }));
    const byCell = [
      { id: 0, cpus: '0-3' },
      { id: 1, cpus: '4-7' },
    ];
    assert.deepEqual([sockets, uncores], [byCell, byCell]);
    const some = createHost({ ...shuffled, uncores: [{ id: 21, cpus: '6-7' }] });
    assert.deepEqual(describeHost(some).uncores, [
      { id: 2, cpus: '0-3' },
      { id: 10, cpus: '4-5' },
      { id: 21, cpus: '6-7' },
    ]);
  });

  it('gives the cores that CPUs touch, and those that they fill', () => {
    assert.equal(`${wholeCoresTouching(host, set('1-2,7'))}`, '0-3,6-7');
    assert.equal(`${wholeCoresWithin(host, set('0-2,6-7'))}`, '0-1,6-7');
  });

  it('is refused beyond the limits', () => {
    const ids = (count: number) => Array.from({ length: count }, (_, id) => id);
    const singles = (count: number) => ({
      cells: ids(count).map((id) => ({ id, cpus: `${id}` })),
      cores: ids(count).map(String),
    });
    const refused = (description: Parameters<typeof createHost>[0], message: RegExp) =>
      assert.throws(
        () => createHost(description),
        (error: Error) => error instanceof HostError && message.test(error.message),
      );
    assert.equal(createHost(singles(64)).cells.length, 64);
    refused(singles(65), /^65 NUMA nodes: at most 64/);
    const one = (count: number) => ({ cells: [{ id: 0, cpus: `0-${count - 1}` }], cores: ids(count).map(String) });
    assert.equal(createHost(one(2048)).cpus.length, 2048);
    refused(one(2049), /^2049 cores: a host has at most 2048/);
    refused({ cells: [{ id: 0, cpus: '0-2048' }], cores: ['0'] }, /^NUMA nodes name more than 2048 CPUs/);
    refused(
      {
        cells: [
          { id: 0, cpus: '0-1023' },
          { id: 1, cpus: '1024-2048' },
        ],
        cores: ['0'],
      },
      /^NUMA nodes name more than 2048 CPUs/,
    );
    refused(
      { cells: [{ id: 0, cpus: '0-7' }], cores: Array.from({ length: 257 }, (_, i) => `${i * 8}-${i * 8 + 7}`) },
      /^cores name more than 2048 CPUs/,
    );
    assert.equal(createHost({ cells: [{ id: 0, cpus: '0-7' }], cores: ['0-7'] }).threadsPerCore, 8);
    refused({ cells: [{ id: 0, cpus: '0-64' }], cores: ['0-64'] }, /^core 0-64 has 65 CPUs: a core has at most 64/);
    refused(
      { cells: [{ id: 0, cpus: '0' }], cores: ['0'], counts: { cpus: 65, sockets: 1 } },
      /counts 65 CPUs and 1 cores/,
    );
    assert.equal(createHost({ cells: [{ id: 1023, cpus: '0' }], cores: ['0'] }).cells[0]?.id, 1023);
    refused({ cells: [{ id: 1024, cpus: '0' }], cores: ['0'] }, /^NUMA node 1024: ids end at 1023/);
    refused(
      {
        cells: [
          { id: 2000, cpus: '0' },
          { id: 1024, cpus: '1' },
        ],
        cores: ['0', '1'],
      },
      /^NUMA node 1024:/,
    );
  });

  it('follows the kernel without offline CPUs', () => {
    const cpus = [0, 1, 2, 3].map((id) => ({
      id,
      siblings: id < 2 ? '0-1' : '2-3',
      socket: 3 - id,
      caches: [{ level: 3, id, sharedBy: 1 }],
    }));
    assert.deepEqual(describeSysfs({ online: '0-2', cpus, nodes: [] }), {
      cells: [{ id: 0, cpus: '0-2' }],
      cores: ['0-1', '2'],
      sockets: [
        { id: 1, cpus: '2' },
        { id: 2, cpus: '1' },
        { id: 3, cpus: '0' },
      ],
      uncores: [
        { id: 0, cpus: '0' },
        { id: 1, cpus: '1' },
        { id: 2, cpus: '2' },
      ],
    });
    assert.deepEqual(describeSysfs({ online: '0-1', cpus, nodes: [{ id: 5, cpus: '0-3' }] }).cells, [
      { id: 5, cpus: '0-1' },
    ]);
    const { sockets } = describeSysfs({
      online: '0-2',
      cpus: cpus.map((cpu) => ({ ...cpu, socket: cpu.id - 1 })),
      nodes: [],
    });
    assert.deepEqual(sockets, [{ id: 0, cpus: '0-2' }]);
    // The data of an offline CPU is ignored.
    const off = cpus.map((cpu) => (cpu.id === 3 ? { id: 3, siblings: 'x' } : cpu));
    assert.ok(describeSysfs({ online: '0-2', cpus: off, nodes: [] }).sockets);
    assert.throws(
      () => createHost(describeSysfs({ online: '0-7', cpus, nodes: [] })),
      /^HostError: CPU 4 belongs to NUMA/,
    );
  });
});

describe('CPU masks', () => {
  const pins = (mask: string, vcpus: number, more = {}) =>
    hostPins({
      mask: parseMask(mask),
      fixMismatch: false,
      indexes: Array.from({ length: vcpus }, (_, i) => i),
      online: set('0-7'),
      container: set('0-5'),
      withheld: set('0'),
      mayBePlugged: false,
      ...more,
    });

  it('are shortened as text', () => {
    assert.equal(briefMask(parseMask('1:2-3:all')), '1:2-3:all');
    assert.equal(briefMask(parseMask('all')), 'all');
    const sixteen = Array.from({ length: 16 }, (_, i) => `${1000 + i}`);
    assert.equal(briefMask(parseMask([...sixteen, '7'].join(':'))), `${sixteen.join(':')}:… (17 entries)`);
    const long = Array.from({ length: 200 }, (_, i) => `${i * 2}`).join(':');
    const brief = briefMask(parseMask(long));
    const [shown = '', rest] = brief.split('…');
    assert.equal(rest, ' (200 entries)');
    assert.ok(shown.length > 10 && long.startsWith(shown), brief);
  });

  it('on a host, cover the VM as a whole, and hotplugged vCPUs', () => {
    const whole = pins('1-3', 2);
    assert.ok(whole.kind === 'pin');
    assert.deepEqual([`${whole.whole}`, whole.otherCount, whole.fellBack], ['1-3', undefined, false]);
    const each = pins('1:2', 2);
    assert.ok(each.kind === 'pin');
    assert.deepEqual([each.whole, each.otherCount], [undefined, undefined]);
    const cut = pins('1:2', 1, { mayBePlugged: true });
    assert.ok(cut.kind === 'pin');
    assert.deepEqual([cut.whole, cut.otherCount?.waits], [undefined, true]);
    const more = pins('1:2', 3, { mayBePlugged: true });
    assert.ok(more.kind === 'pin');
    assert.equal(more.otherCount?.waits, false);
    const threads = pins('1:2:3', 2);
    assert.ok(threads.kind === 'refused');
    assert.match(threads.message, /^the CPU mask 1:2:3: .*0.*1/);
    const empty = pins('0', 2);
    assert.ok(empty.kind === 'refused');
    assert.doesNotMatch(empty.message, /^the CPU mask 0: the CPU mask/);
  });

  it('for taskset, are one for each vCPU', () => {
    assert.deepEqual(toTaskset(parseMask('1:all'), 2, set('0-3')), ['0x00000002', '0x0000000F']);
    assert.deepEqual(toTaskset(parseMask('3'), 2, set('0-3')), ['0x00000008', '0x00000008']);
  });

  it('are refused if too long or malformed', () => {
    assert.throws(() => parseMask('1:'.repeat(100_000)), ParseError);
    assert.throws(() => parseMask('x'), ParseError);
  });
});
