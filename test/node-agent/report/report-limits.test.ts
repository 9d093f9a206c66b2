import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parse } from 'yaml';
import { MAX_PINNING_MESSAGE, MAX_REFUSAL_MESSAGE, type NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { fitReport, ReportLimitError } from '../../../node-agent/report/limits.ts';
import { root } from '../../support/bundles.ts';

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly maxItems?: number;
  readonly maxLength?: number;
  readonly maxProperties?: number;
  readonly maximum?: number;
  readonly minimum?: number;
  readonly enum?: readonly string[];
}

const definition = parse(readFileSync(join(root, 'manifests/base/crd/nodetopologies.yaml'), 'utf8')) as {
  spec: { versions: { schema: { openAPIV3Schema: Schema } }[] };
};
const schema = definition.spec.versions[0]?.schema.openAPIV3Schema.properties?.['status'] ?? {};

/** Faults for which the API server would refuse a value; only sizes are checked. */
function faultsOf(value: unknown, { properties, additionalProperties, items, ...bounds }: Schema, path = ''): string[] {
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

const SMALL: NodeTopologyStatus = {
  kubeletVersion: 'v1.36.0',
  cells: [{ id: 0, cpus: '0-7' }],
  cores: ['0,4', '1,5', '2,6', '3,7'],
  reserved: '0',
  cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
  assignments: [{ podUID: 'u', namespace: 'n', podName: 'p', container: 'c', cpus: '2-3' }],
  physnets: [{ name: 'physnet0', cells: '0' }],
  conditions: [
    { type: 'AssignmentsKnown', status: 'True', reason: 'AsExpected', message: '', lastTransitionTime: 'then' },
  ],
};
const NOW = '2026-01-02T00:00:00Z';
const fitted = (more: Partial<NodeTopologyStatus>) => fitReport({ ...SMALL, ...more }, [], NOW);
const completeness = ({ conditions = [] }: NodeTopologyStatus) =>
  conditions.find(({ type }) => type === 'ReportComplete');
const many = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
const long = 'x'.repeat(10_000);
const sizes = (count: number) => Object.fromEntries(many(count, (i) => [`r${i}`, 1]));

describe('a report of any size', () => {
  it('stays unchanged if it fits', () => {
    assert.deepEqual(fitted({}), SMALL);
    assert.deepEqual(faultsOf(SMALL, schema), []);
  });

  const large: [string, Partial<NodeTopologyStatus>, RegExp | undefined][] = [
    ['physnets', { physnets: many(300, (i) => ({ name: `n${i}`, cells: '0' })) }, /44 of 300 physnets/],
    [
      'names of physnets',
      {
        physnets: [
          { name: long, cells: '0' },
          { name: 'b', cells: long },
        ],
      },
      /2 of 2 physnets/,
    ],
    [
      'VMs with a mask, and their messages',
      {
        pinning: many(1100, (i) => {
          return {
            podUID: `u${i}`,
            namespace: long,
            podName: long,
            state: 'refused',
            vcpus: 1,
            message: long,
          } as const;
        }),
      },
      /76 of 1100 VMs with a CPU mask/,
    ],
    [
      'refused containers',
      { refusals: many(70, () => ({ namespace: long, podName: long, container: long, message: long })) },
      /6 of 70 refused containers/,
    ],
    ['sockets', { sockets: many(65, (id) => ({ id, cpus: '0' })) }, /the sockets/],
    ['caches', { uncores: many(1025, (id) => ({ id, cpus: '0' })) }, /the last-level caches/],
    ['CPUs of a socket', { sockets: [{ id: 0, cpus: long }] }, /the sockets/],
    ['distances', { distances: Object.fromEntries(many(65, (i) => [String(i), [10]])) }, /the distances/],
    ['isolated CPUs', { isolated: long }, /the isolated CPUs/],
    ['polling CPUs', { pmdCPUs: long }, /the CPUs of poll mode drivers/],
    ['the tunnel', { tunnel: { cells: long } }, /the tunnel/],
    [
      'memory',
      { memoryManager: { policy: long, cells: many(65, (id) => ({ id, memory: 1 })) } },
      /the memory of NUMA nodes/,
    ],
    ['resources of device plugins', { devices: many(65, (i) => ({ resource: `r${i}`, groups: [] })) }, /the devices/],
    ['a long name of a resource', { devices: [{ resource: long, groups: [] }] }, /the devices/],
    [
      'groups of devices',
      { devices: [{ resource: 'r', groups: many(33, (i) => ({ cells: `${i}`, total: 1, free: 1 })) }] },
      /the devices/,
    ],
    [
      'kinds of memory',
      {
        memoryManager: {
          policy: 'Static',
          cells: [
            {
              id: 0,
              memory: 1,
              state: { blocks: 0, group: '0', free: Object.fromEntries(many(33, (i) => [`m${i}`, 1])) },
            },
          ],
        },
      },
      /the memory of NUMA nodes/,
    ],
    [
      'options',
      { cpuManager: { policy: long, options: Object.fromEntries(many(40, (i) => [`o${i}`, 'true'])) } },
      /8 of the options of the CPU manager/,
    ],
    [
      'a long option, which is dropped rather than changed',
      { topologyManager: { policy: 'p', scope: long, options: { a: long, [long]: 'b', c: 'd' } } },
      /2 of the options of the topology manager/,
    ],
    ['a version', { kubeletVersion: long }, undefined],
    ['names of a source file', { assignments: [{ podUID: long, container: long, cpus: '1' }] }, undefined],
    [
      'the names of all pods',
      {
        assignments: many(2048, (i) => {
          return {
            podUID: `u${i}`,
            namespace: long,
            podName: long,
            container: 'c',
            cpus: many(40, (j) => i + j * 2).join(),
          };
        }),
      },
      /the names of pods/,
    ],
    [
      'a condition',
      { conditions: [{ type: 't', status: 'False', reason: 'r', message: long, lastTransitionTime: NOW }] },
      undefined,
    ],
  ];
  for (const [what, more, says] of large) {
    it(`fits without some of: ${what}; a condition names what was left out`, () => {
      const before = { ...SMALL, ...more };
      assert.ok(faultsOf(before, schema).length > 0 || JSON.stringify(before).length > 2 ** 20, 'it would not fit');
      const status = fitted(more);
      assert.deepEqual(faultsOf(status, schema), []);
      assert.ok(JSON.stringify(status).length <= 1.4 * 2 ** 20);
      const condition = completeness(status);
      if (says === undefined) assert.equal(condition, undefined);
      else {
        assert.equal(condition?.status, 'False');
        assert.match(condition?.message ?? '', says);
      }
    });
  }

  it('has all CPU owners and the host’s topology, or none of them', () => {
    const wrong: [Partial<NodeTopologyStatus>, RegExp][] = [
      [
        { assignments: many(2049, () => ({ podUID: 'u', container: 'c', cpus: '1' })) },
        /assignments: more than 2048 items/,
      ],
      [
        { assignments: [{ podUID: 'u', container: 'c', cpus: long }] },
        /assignments\.0\.cpus: longer than 4096 characters/,
      ],
      [{ cells: many(65, (id) => ({ id, cpus: '0' })) }, /cells: more than 64 items/],
      [{ cores: many(2049, String) }, /cores: more than 2048 items/],
      [{ cores: [long] }, /cores\.0: longer than 256 characters/],
      [{ reserved: long }, /reserved: longer than 4096 characters/],
    ];
    for (const [more, says] of wrong) {
      assert.throws(
        () => fitted(more),
        (error) => error instanceof ReportLimitError && says.test(error.message),
      );
    }
  });

  const text = (length: number) => 'x'.repeat(length);
  const atLimits: [string, Partial<NodeTopologyStatus>, Partial<NodeTopologyStatus>][] = [
    [
      'NUMA nodes of a network',
      { physnets: [{ name: text(253), cells: text(256) }], tunnel: { cells: text(256) } },
      { physnets: [{ name: 'a', cells: text(257) }], tunnel: { cells: '0' } },
    ],
    [
      'the name of a physnet',
      { physnets: [{ name: text(253), cells: '' }] },
      { physnets: [{ name: text(254), cells: '' }] },
    ],
    ['NUMA nodes of the tunnel', { tunnel: { cells: text(256) } }, { tunnel: { cells: text(257) } }],
    [
      'rows of distances',
      { distances: Object.fromEntries(many(64, (i) => [String(i), many(32, () => 10)])) },
      { distances: Object.fromEntries(many(65, (i) => [String(i), [10]])) },
    ],
    ['columns of distances', { distances: { 0: many(64, () => 10) } }, { distances: { 0: many(65, () => 10) } }],
    ['isolated CPUs', { isolated: text(4096) }, { isolated: text(4097) }],
    ['polling CPUs', { pmdCPUs: text(4096) }, { pmdCPUs: text(4097) }],
    ['sockets', { sockets: many(64, (id) => ({ id, cpus: '0' })) }, { sockets: many(65, (id) => ({ id, cpus: '0' })) }],
    ['CPUs of a socket', { sockets: [{ id: 0, cpus: text(4096) }] }, { sockets: [{ id: 0, cpus: text(4097) }] }],
    [
      'memory of NUMA nodes',
      { memoryManager: { policy: 'p', cells: many(64, (id) => ({ id, memory: 1 })) } },
      { memoryManager: { policy: 'p', cells: many(65, (id) => ({ id, memory: 1 })) } },
    ],
    [
      'sizes of huge pages',
      { memoryManager: { policy: 'p', cells: [{ id: 0, memory: 1, hugePages: sizes(32) }] } },
      { memoryManager: { policy: 'p', cells: [{ id: 0, memory: 1, hugePages: sizes(33) }] } },
    ],
    [
      'reserved resources',
      { memoryManager: { policy: 'p', cells: [{ id: 0, memory: 1, reserved: sizes(32) }] } },
      { memoryManager: { policy: 'p', cells: [{ id: 0, memory: 1, reserved: sizes(33) }] } },
    ],
    [
      'options',
      { cpuManager: { policy: 'p', options: Object.fromEntries(many(32, (i) => [`o${i}`, text(64)])) } },
      { cpuManager: { policy: 'p', options: Object.fromEntries(many(33, (i) => [`o${i}`, 'x'])) } },
    ],
    [
      'the name of an option',
      { topologyManager: { policy: 'p', scope: 's', options: { [text(64)]: 'x' } } },
      { topologyManager: { policy: 'p', scope: 's', options: { [text(65)]: 'x' } } },
    ],
    [
      'the value of an option',
      { topologyManager: { policy: 'p', scope: 's', options: { a: text(64) } } },
      { topologyManager: { policy: 'p', scope: 's', options: { a: text(65) } } },
    ],
  ];
  for (const [what, fits, exceeds] of atLimits) {
    it(`is complete at the limit and incomplete beyond it: ${what}`, () => {
      assert.deepEqual(fitted(fits), { ...SMALL, ...fits });
      assert.equal(completeness(fitted(exceeds))?.reason, 'TooLarge');
    });
  }

  it('cuts messages at the limit and omits missing ones', () => {
    const refused = { namespace: 'n', podName: 'p', container: 'c' };
    const pinned = { podUID: 'u', namespace: 'n', podName: 'p', state: 'pinned', vcpus: 1 } as const;
    const { pinning, refusals } = fitted({
      pinning: [pinned, { ...pinned, message: text(MAX_PINNING_MESSAGE + 1) }],
      refusals: [{ ...refused, message: text(MAX_REFUSAL_MESSAGE + 1) }],
    });
    assert.deepEqual(pinning, [pinned, { ...pinned, message: `${text(MAX_PINNING_MESSAGE - 1)}…` }]);
    assert.deepEqual(refusals, [{ ...refused, message: `${text(MAX_REFUSAL_MESSAGE - 1)}…` }]);
  });

  it('keeps the names of pods up to one MiB, and has only uids beyond that', () => {
    const isolated = text(4000);
    const assignments = (last: number) => [
      ...many(250, (i) => ({ podUID: `u${i}`, namespace: 'n', podName: 'p', container: 'c', cpus: text(4000) })),
      { podUID: 'v', namespace: 'n', podName: 'p', container: 'c', cpus: text(last) },
    ];
    const sized = (last: number) => fitted({ isolated, physnets: physnets(), assignments: assignments(last) });
    const physnets = () => many(140, (i) => ({ name: `n${i}`.padEnd(150, 'x'), cells: '0' }));
    assert.equal(completeness(sized(1)), undefined);
    const size = JSON.stringify(sized(1)).length;
    const room = 2 ** 20 - size + 1;
    assert.ok(room > 0 && room < 4096, `${room} characters are left`);
    const [most, more] = [sized(room), sized(room + 1)];
    assert.equal(JSON.stringify(most).length, 2 ** 20);
    assert.equal(completeness(most), undefined);
    assert.equal(completeness(more)?.message, 'left out of the report: the names of pods');
    assert.deepEqual(more.assignments[0], { podUID: 'u0', container: 'c', cpus: text(4000) });
  });

  it('keeps the time of the condition while something is left out, and removes it otherwise', () => {
    const more = { isolated: long };
    const first = fitted(more);
    const second = fitReport({ ...SMALL, ...more }, first.conditions, 'later');
    assert.equal(completeness(second)?.lastTransitionTime, NOW);
    assert.equal(completeness(fitReport(SMALL, second.conditions, 'later')), undefined);
  });

  it('fits the definition for any sizes, or reports that the host does not fit', () => {
    const text = fc.nat(5000).map((length) => 'x'.repeat(length));
    const group = fc.record({ id: fc.nat(100), cpus: text });
    const named = fc.record({ podUID: text, namespace: text, podName: text, container: text, cpus: fc.constant('1') });
    const status = fc.record(
      {
        kubeletVersion: text,
        cells: fc.array(group, { maxLength: 40 }),
        sockets: fc.array(group, { maxLength: 80 }),
        assignments: fc.array(named, { maxLength: 20 }),
        physnets: fc.array(fc.record({ name: text, cells: text }), { maxLength: 300 }),
        isolated: text,
        cpuManager: fc.record({ policy: text, options: fc.dictionary(fc.string(), text, { maxKeys: 40 }) }),
        reserved: text,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(status, (more) => {
        try {
          assert.deepEqual(faultsOf(fitted(more), schema), []);
        } catch (error) {
          assert.ok(error instanceof ReportLimitError, String(error));
        }
      }),
      { numRuns: 200 },
    );
  });
});
