import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { fitReport } from '../../../node-agent/report/limits.ts';
import { SCHEMAS, type Schema } from '../../manifests/definition-fixture.ts';

const [DEFINED] = SCHEMAS;
const schema = DEFINED?.properties?.['status'] ?? {};

/** Faults for which the API server would refuse a value; only sizes are checked. */
function faultsOf(value: unknown, definition: Partial<Schema>, path = ''): string[] {
  const { properties, additionalProperties, items, ...bounds } = definition;
  const faults: string[] = [];
  const most = (what: string, count: number, limit = Number.POSITIVE_INFINITY) => {
    if (count > limit) faults.push(`${path}: ${what} ${count}, at most ${limit}`);
  };
  if (typeof value === 'string') {
    most('characters', [...value].length, bounds.maxLength);
    if (bounds.enum && !bounds.enum.includes(value)) faults.push(`${path}: ${value}`);
  } else if (typeof value === 'number') {
    most('number', value, bounds.maximum);
    most('negative', -value, -(bounds.minimum ?? Number.NEGATIVE_INFINITY));
  } else if (Array.isArray(value)) {
    most('items', value.length, bounds.maxItems);
    return [...faults, ...value.flatMap((item) => faultsOf(item, items ?? {}, `${path}[]`))];
  } else if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).filter(([, field]) => field !== undefined);
    most('entries', entries.length, bounds.maxProperties);
    for (const name of bounds.required ?? []) if (!(name in value)) faults.push(`${path}: lacks ${name}`);
    for (const [name, field] of entries) {
      const inner = properties?.[name] ?? additionalProperties;
      if (inner === undefined) faults.push(`${path}.${name} is not in the definition`);
      else faults.push(...faultsOf(field, inner, `${path}.${name}`));
    }
  }
  return faults;
}

const CONDITION = { type: 't', status: 'True', reason: 'AsExpected', message: '', lastTransitionTime: 'then' } as const;
const SMALL: NodeTopologyStatus = {
  kubeletVersion: 'v1.36.0',
  cells: [{ id: 0, cpus: '0-7' }],
  cores: ['0,4', '1,5', '2,6', '3,7'],
  reserved: '0',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  assignments: [{ podUID: 'u', namespace: 'n', podName: 'p', container: 'c', cpus: '2-3' }],
  physnets: [{ name: 'physnet0', cells: '0' }],
  conditions: [CONDITION],
};
const NOW = '2026-01-02T00:00:00Z';
const fitted = (more: Partial<NodeTopologyStatus>) => fitReport({ ...SMALL, ...more }, [], NOW);
const completeness = ({ conditions = [] }: NodeTopologyStatus) =>
  conditions.find(({ type }) => type === 'ReportComplete');
const many = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
const long = 'x'.repeat(10_000);
const text = (length: number) => 'x'.repeat(length);
const sizes = (count: number) => Object.fromEntries(many(count, (i) => [`r${i}`, 1]));
const named = (count: number) => Object.fromEntries(many(count, (i) => [`o${i}`, text(64)]));
const lists = (count: number, cpus = '0') => many(count, (id) => ({ id, cpus }));
const distances = (rows: number, columns: number) =>
  Object.fromEntries(many(rows, (i) => [String(i), many(columns, () => 10)]));

describe('a report of any size', () => {
  it('stays unchanged if it fits', () => {
    assert.deepEqual(fitted({}), SMALL);
    assert.deepEqual(faultsOf(SMALL, schema), []);
  });

  const memory = (more: Partial<NonNullable<NonNullable<NodeTopologyStatus['memoryManager']>['cells']>[0]>) => ({
    memoryManager: { policy: 'p', cells: [{ id: 0, memory: 1, ...more }] },
  });
  const cellsOf = (count: number) => ({
    memoryManager: { policy: 'p', cells: many(count, (id) => ({ id, memory: 1 })) },
  });
  const options = (list: Record<string, string>) => ({ topologyManager: { policy: 'p', scope: 's', options: list } });
  const blocks = (kinds: number) => memory({ state: { blocks: 0, group: '0', free: sizes(kinds) } });
  const groups = (count: number) => ({
    devices: [{ resource: 'r', groups: many(count, (i) => ({ cells: `${i}`, total: 1, free: 1 })) }],
  });
  const resources = (count: number) => ({ devices: many(count, (i) => ({ resource: `r${i}`, groups: [] })) });
  const physnet = (name: string, cells: string) => ({ physnets: [{ name, cells }] });
  const pinned = (count: number, name: string) => ({
    pinning: many(count, (i) => {
      return { podUID: `u${i}`, namespace: name, podName: name, state: 'refused', vcpus: 1, message: name } as const;
    }),
  });
  const refused = (count: number, name: string) => ({
    refusals: many(count, () => ({ namespace: name, podName: name, container: name, message: name })),
  });
  const physnets = (count: number) => ({ physnets: many(count, (i) => ({ name: `n${i}`, cells: '0' })) });
  const longNames = (i: number) => {
    const cpus = many(40, (j) => i + j * 2).join();
    return { podUID: `u${i}`, namespace: long, podName: long, container: 'c', cpus };
  };
  /** What fits as it is, what does not, and what the condition then says. */
  const rows: [string, fits: Partial<NodeTopologyStatus>, exceeds: Partial<NodeTopologyStatus>, says?: RegExp][] = [
    ['physnets', physnets(256), physnets(300), /physnets/],
    ['NUMA nodes of a physnet', physnet('a', text(256)), physnet('a', text(257)), /physnets/],
    ['the name of a physnet', physnet(text(253), ''), physnet(text(254), ''), /physnets/],
    ['VMs with a mask', pinned(1024, 'x'), pinned(1025, 'x'), /pinning/],
    ['refused containers', refused(64, 'x'), refused(65, 'x'), /refusals/],
    ['sockets', { sockets: lists(64) }, { sockets: lists(65) }, /sockets/],
    ['CPUs of a socket', { sockets: lists(1, text(4096)) }, { sockets: lists(1, text(4097)) }, /sockets/],
    ['caches', { uncores: lists(1024) }, { uncores: lists(1025) }, /uncores/],
    ['rows of distances', { distances: distances(64, 32) }, { distances: distances(65, 1) }, /distances/],
    ['columns of distances', { distances: distances(1, 64) }, { distances: distances(1, 65) }, /distances/],
    ['isolated CPUs', { isolated: text(4096) }, { isolated: text(4097) }, /isolated/],
    ['polling CPUs', { pmdCPUs: text(4096) }, { pmdCPUs: text(4097) }, /pmdCPUs/],
    ['NUMA nodes of the tunnel', { tunnel: { cells: text(256) } }, { tunnel: { cells: text(257) } }, /tunnel/],
    ['memory of NUMA nodes', cellsOf(64), cellsOf(65), /memoryManager\.cells/],
    ['huge pages', memory({ hugePages: sizes(32) }), memory({ hugePages: sizes(33) }), /memoryManager\.cells/],
    ['reserved memory', memory({ reserved: sizes(32) }), memory({ reserved: sizes(33) }), /memoryManager\.cells/],
    ['kinds of memory', blocks(32), blocks(33), /memoryManager\.cells/],
    ['resources of device plugins', resources(64), resources(65), /devices/],
    ['a long name of a resource', {}, { devices: [{ resource: long, groups: [] }] }, /devices/],
    ['groups of devices', groups(32), groups(33), /devices/],
    ['options', options(named(32)), options(named(40)), /topologyManager\.options/],
    ['a long option', options({ [text(64)]: text(64) }), options({ a: text(65), [text(65)]: 'b' }), /Manager\.options/],
    ['a policy', {}, { cpuManager: { policy: long } }],
    ['a version', {}, { kubeletVersion: long }],
    ['names of a source file', {}, { assignments: [{ podUID: long, container: long, cpus: '1' }] }],
    ['the names of all pods', {}, { assignments: many(2048, longNames) }, /assignments\.podName/],
    ['a condition', {}, { conditions: [{ ...CONDITION, message: long }] }],
  ];
  for (const [what, fits, exceeds, says] of rows) {
    it(`is complete up to the limit, and fits without some beyond it, which a condition names: ${what}`, () => {
      assert.deepEqual(fitted(fits), { ...SMALL, ...fits });
      const before = { ...SMALL, ...exceeds };
      assert.ok(faultsOf(before, schema).length > 0 || JSON.stringify(before).length > 2 ** 20, 'it would not fit');
      const status = fitted(exceeds);
      assert.deepEqual(faultsOf(status, schema), []);
      assert.ok(JSON.stringify(status).length <= 1.4 * 2 ** 20);
      const { reason, message = '' } = completeness(status) ?? {};
      assert.equal(reason, says && 'TooLarge');
      assert.match(message, says ?? /^$/);
    });
  }

  it('has all CPU owners and the host’s topology, or none of them', () => {
    const owner = { podUID: 'u', container: 'c', cpus: '1' };
    const wrong: [Partial<NodeTopologyStatus>, RegExp][] = [
      [{ assignments: many(2049, () => owner) }, /assignments: more than 2048 items/],
      [{ assignments: [{ ...owner, cpus: long }] }, /assignments\.0\.cpus: longer than 4096 characters/],
      [{ cells: many(65, (id) => ({ id, cpus: '0' })) }, /cells: more than 64 items/],
      [{ cores: many(2049, String) }, /cores: more than 2048 items/],
      [{ cores: [long] }, /cores\.0: longer than 256 characters/],
      [{ reserved: long }, /reserved: longer than 4096 characters/],
    ];
    for (const [more, says] of wrong) {
      assert.throws(() => fitted(more), { name: 'ReportLimitError', message: says });
    }
  });

  it('keeps the time of the condition while something is left out, and removes it otherwise', () => {
    const more = { isolated: long };
    const first = fitted(more);
    const second = fitReport({ ...SMALL, ...more }, first.conditions, 'later');
    assert.equal(completeness(second)?.lastTransitionTime, NOW);
    assert.equal(completeness(fitReport(SMALL, second.conditions, 'later')), undefined);
  });
});
