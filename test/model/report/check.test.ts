import assert from 'node:assert/strict';
import * as z from 'zod';
import { createHost, HostError } from '../../../model/host.ts';
import { checkReport, faultOfError, type NodeFacts } from '../../../model/report/check.ts';

const host = (cpus: number, threads: number) =>
  createHost({
    cells: [{ id: 0, cpus: `0-${cpus - 1}` }],
    cores: Array.from({ length: cpus / threads }, (_, i) => `${i * threads}-${(i + 1) * threads - 1}`),
  });

describe('a report compared with its Node', () => {
  const cases: [string, number, number, NodeFacts | undefined, string | undefined][] = [
    ['may not have more CPUs than the node', 16, 2, { cpus: 8, arch: 'amd64' }, 'more-cpus'],
    ['may have an unknown architecture', 8, 8, { cpus: 8, arch: undefined }, undefined],
  ];
  for (const [name, cpus, threads, facts, code] of cases) {
    it(name, () => assert.equal(checkReport(host(cpus, threads), facts)?.code, code));
  }

  for (const [arch, most] of [
    ['amd64', 2],
    ['arm64', 4],
    ['ppc64le', 8],
    ['s390x', 2],
  ] as const) {
    it(`may have up to ${most} threads per core on ${arch}`, () => {
      assert.equal(checkReport(host(16, most), { arch }), undefined);
      assert.equal(checkReport(host(16, 2 * most), { arch })?.code, 'threads-per-core');
    });
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
    ['may not have more devices than the Node', 9, ofNode(8), 'more-devices'],
    ['may not have devices that the Node does not have', 1, new Map(), 'more-devices'],
    ['may have devices while the Node counts none after a restart of the kubelet', 8, ofNode(0), undefined],
  ] as const) {
    it(name, () => assert.equal(checkReport(host(8, 2), { cpus: 8, capacity }, devices(total))?.code, code));
  }

  const parsed = (format: unknown, message = 'has format 9') =>
    z.object({ other: z.number(), format: z.literal(1, message) }).safeParse({ format }).error;
  const long = 'x'.repeat(10_000);
  for (const [what, error, code, message] of [
    [
      'an unknown format',
      parsed(9),
      'unknown-format',
      'the report has format 9: upgrade webhook and extender, then the agents',
    ],
    ['a field of another type', parsed(1), 'contradiction', 'the report contradicts itself: it cannot be read'],
    ['an impossible host', new HostError('two cores'), 'contradiction', 'the report contradicts itself: two cores'],
    ['a bug', new TypeError('secret'), 'contradiction', 'the report contradicts itself: it cannot be read'],
  ] as const) {
    it(`is refused with the reason of the parser: ${what}`, () =>
      assert.deepEqual(faultOfError(error), { code, message }));
  }

  it('has short messages for every fault', () => {
    const devicesOf = [{ resource: 'x'.repeat(253), groups: [{ total: 1, free: 0 }] }];
    assert.equal(checkReport(host(8, 2), { capacity: new Map() }, devicesOf)?.message.length, 256);
    assert.equal(faultOfError(new HostError(long)).message.length, 256);
    assert.equal(faultOfError(parsed(9, long)).message.length, 256);
  });
});
