import assert from 'node:assert/strict';
import { createHost, HostError } from '../../model/host.ts';
import { type ComparedReport, checkReport, faultOfError, type NodeFacts, outliers } from '../../model/report/check.ts';

const host = (cpus: number, threads: number) =>
  createHost({
    cells: [{ id: 0, cpus: `0-${cpus - 1}` }],
    cores: Array.from({ length: cpus / threads }, (_, i) => `${i * threads}-${(i + 1) * threads - 1}`),
  });

describe('model/report: a report held against its Node', () => {
  const cases: [string, number, number, NodeFacts | undefined, string | undefined][] = [
    ['all CPUs of the node', 8, 2, { cpus: 8, arch: 'amd64' }, undefined],
    ['fewer CPUs: some are offline', 6, 2, { cpus: 8, arch: 'amd64' }, undefined],
    ['more CPUs than the node has', 16, 2, { cpus: 8, arch: 'amd64' }, 'more-cpus'],
    ['eight threads per core on amd64', 8, 8, { cpus: 8, arch: 'amd64' }, 'threads-per-core'],
    ['four threads per core on arm64', 8, 4, { cpus: 8, arch: 'arm64' }, undefined],
    ['eight threads per core on POWER', 8, 8, { cpus: 8, arch: 'ppc64le' }, undefined],
    ['an unknown architecture', 8, 8, { cpus: 8, arch: undefined }, undefined],
    ['no Node yet', 8, 8, undefined, undefined],
  ];
  for (const [name, cpus, threads, facts, code] of cases) {
    it(name, () => assert.equal(checkReport(host(cpus, threads), facts)?.code, code));
  }

  it('a message stays short for every fault', () => {
    assert.ok(faultOfError(new HostError('x'.repeat(10_000))).message.length <= 256);
    assert.equal(faultOfError(new Error('secret')).message, 'the report contradicts itself: it cannot be read');
  });
});

describe('model/report: outliers among nodes', () => {
  const of = (...threads: number[]) =>
    new Map<string, ComparedReport>(threads.map((threadsPerCore, i) => [`n${i}`, { threadsPerCore }]));
  const cases: [string, ReturnType<typeof of>, string[]][] = [
    ['one of four claims SMT8', of(2, 2, 2, 8), ['n3']],
    ['all have SMT8', of(8, 8, 8), []],
    ['half have SMT4', of(2, 4), []],
    ['one of each', of(1, 2, 4, 8), []],
    ['two claim SMT8', of(2, 2, 8, 8), []],
    ['the others do not agree', of(1, 2, 8), []],
    ['one of three', of(2, 2, 4), ['n2']],
    ['one claims SMT2 where the others have none: that is common', of(1, 1, 1, 2), []],
    ['a single node', of(8), []],
  ];
  for (const [name, reports, expected] of cases) {
    it(name, () => assert.deepEqual([...outliers(reports).keys()], expected));
  }
  it('a known architecture vouches for its own', () => {
    const reports = new Map([...of(2, 2, 2), ['power', { threadsPerCore: 8, arch: 'ppc64le' }]]);
    assert.deepEqual([...outliers(reports).keys()], []);
  });
});
