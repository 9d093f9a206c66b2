import assert from 'node:assert/strict';
import { createHost, HostError } from '../../model/host.ts';
import { type ComparedReport, checkReport, faultOfError, type NodeFacts, outliers } from '../../model/report/check.ts';

const host = (cpus: number, threads: number) =>
  createHost({
    cells: [{ id: 0, cpus: `0-${cpus - 1}` }],
    cores: Array.from({ length: cpus / threads }, (_, i) => `${i * threads}-${(i + 1) * threads - 1}`),
  });

describe('model/report: a report compared with its Node', () => {
  const cases: [string, number, number, NodeFacts | undefined, string | undefined][] = [
    ['may have all CPUs of the node', 8, 2, { cpus: 8, arch: 'amd64' }, undefined],
    ['may have fewer CPUs, because some are offline', 6, 2, { cpus: 8, arch: 'amd64' }, undefined],
    ['may not have more CPUs than the node', 16, 2, { cpus: 8, arch: 'amd64' }, 'more-cpus'],
    ['may not have eight threads per core on amd64', 8, 8, { cpus: 8, arch: 'amd64' }, 'threads-per-core'],
    ['may have four threads per core on arm64', 8, 4, { cpus: 8, arch: 'arm64' }, undefined],
    ['may have eight threads per core on POWER', 8, 8, { cpus: 8, arch: 'ppc64le' }, undefined],
    ['may have an unknown architecture', 8, 8, { cpus: 8, arch: undefined }, undefined],
    ['may be older than its Node', 8, 8, undefined, undefined],
  ];
  for (const [name, cpus, threads, facts, code] of cases) {
    it(name, () => assert.equal(checkReport(host(cpus, threads), facts)?.code, code));
  }

  const devices = (total: number) => [
    {
      resource: 'example.com/vf',
      groups: [
        { total: total - 1, free: 0 },
        { total: 1, free: 0 },
      ],
    },
  ];
  const ofNode = (count: number) => new Map([['example.com/vf', count]]);
  for (const [name, total, capacity, code] of [
    ['may have all devices of the Node', 8, ofNode(8), undefined],
    ['may have fewer devices, because some are unhealthy', 4, ofNode(8), undefined],
    ['may not have more devices than the Node', 9, ofNode(8), 'more-devices'],
    ['may not have devices that the Node does not have', 1, new Map(), 'more-devices'],
    ['may have devices while the Node counts none after a restart of the kubelet', 8, ofNode(0), undefined],
    ['may have devices if the capacity is not known', 8, undefined, undefined],
  ] as const) {
    it(name, () => assert.equal(checkReport(host(8, 2), { cpus: 8, capacity }, devices(total))?.code, code));
  }

  it('has short messages for every fault', () => {
    const long = [{ resource: 'x'.repeat(253), groups: [{ total: 1, free: 0 }] }];
    assert.equal(checkReport(host(8, 2), { capacity: new Map() }, long)?.message.length, 256);
    assert.ok(faultOfError(new HostError('x'.repeat(10_000))).message.length <= 256);
    assert.equal(faultOfError(new Error('secret')).message, 'the report contradicts itself: it cannot be read');
  });
});

describe('model/report: outliers among nodes', () => {
  const of = (...threads: number[]) =>
    new Map<string, ComparedReport>(threads.map((threadsPerCore, i) => [`n${i}`, { threadsPerCore }]));
  const cases: [string, ReturnType<typeof of>, string[]][] = [
    ['are one of four with SMT8', of(2, 2, 2, 8), ['n3']],
    ['are none if all have SMT8', of(8, 8, 8), []],
    ['are none if half have SMT4', of(2, 4), []],
    ['are none with one of each', of(1, 2, 4, 8), []],
    ['are two with SMT8', of(2, 2, 8, 8), []],
    ['are none if the others differ', of(1, 2, 8), []],
    ['are one of three', of(2, 2, 4), ['n2']],
    ['are not nodes with SMT2 among nodes without SMT, which is common', of(1, 1, 1, 2), []],
    ['are not a single node', of(8), []],
  ];
  for (const [name, reports, expected] of cases) {
    it(name, () => assert.deepEqual([...outliers(reports).keys()], expected));
  }
  it('are not nodes with a matching architecture', () => {
    const reports = new Map([...of(2, 2, 2), ['power', { threadsPerCore: 8, arch: 'ppc64le' }]]);
    assert.deepEqual([...outliers(reports).keys()], []);
  });
});
