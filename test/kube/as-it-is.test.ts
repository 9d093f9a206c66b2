import assert from 'node:assert/strict';
import fc from 'fast-check';
import * as z from 'zod';
import { explainedNode } from '../../cli/explain/objects.ts';
import { asIs, leaves } from '../../kube/as-it-is.ts';
import { nodeTopology } from '../../kube/node-topology.ts';
import { lease, node, pod } from '../../kube/resources.ts';
import { observedPod } from '../../scheduler-plugin/cluster/pod-view.ts';
import { vector } from '../support/vectors.ts';

/** Fails unless each field that was read equals the field of the value; omitted fields do not matter. */
function assertWithin(read: unknown, value: unknown, path = ''): void {
  if (typeof read !== 'object' || read === null) {
    assert.deepEqual(read, value, path);
    return;
  }
  for (const [key, its] of Object.entries(read)) {
    assertWithin(its, (value as Record<string, unknown>)[key], `${path}.${key}`);
  }
  if (Array.isArray(read)) assert.equal(read.length, (value as unknown[]).length, path);
}

/** Replacement values for a field. */
const replacements = fc.constantFrom<unknown[]>(
  null,
  undefined,
  0,
  1.5,
  '',
  'text',
  '4',
  true,
  [],
  [null],
  {},
  { a: 1 },
  {
    a: 'b',
  },
);

/** Paths of all fields and elements below a value. */
function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  const below = Object.entries(value).flatMap(([key, its]) => pathsOf(its, [...path, key]));
  return path.length === 0 ? below : [path, ...below];
}

function replaced(value: unknown, [first, ...rest]: readonly string[], by: unknown): unknown {
  if (first === undefined) return by;
  if (typeof value !== 'object' || value === null) return value;
  // JSON has no array with holes.
  if (Array.isArray(value) && Number(first) > value.length) return value;
  const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...value };
  copy[first] = replaced(copy[first], rest, by);
  return copy;
}

describe('values that a schema does not change', () => {
  const launcher = vector('virt-launcher-pod.admission.json') as object;
  const running = {
    phase: 'Running',
    qosClass: 'Guaranteed',
    conditions: [{ type: 'PodScheduled', status: 'True', reason: 'a', message: 'b' }],
  };
  const upper = z.string().transform((text) => text.toUpperCase());
  const short = z.string().transform(
    leaves(
      (text: string) => text.slice(0, 3),
      (text) => String(text).length <= 3,
    ),
  );
  for (const [what, schema, taken, left] of [
    ['texts', z.string(), ['', 'a'], [1, null, undefined]],
    ['texts with a minimum length', z.string().min(1), ['a'], ['', 1, ['a']]],
    ['numbers', z.number(), [1, 1.5], ['1', null, Number.POSITIVE_INFINITY, Number.NaN]],
    ['whole numbers from 0', z.number().int().nonnegative(), [0, 7], [-1, 1.5, 2 ** 53, '1', null]],
    ['numbers with other rules', z.number().max(3), [], [1]],
    ['maps', z.record(z.string(), z.number()), [{}, { a: 1 }], [{ a: '1' }, [], null, { constructor: 1 }]],
    ['maps with a key that is dropped', z.record(z.string(), z.string()), [], [JSON.parse('{"__proto__":"a"}')]],
    ['maps with rules for keys', z.record(z.string().max(1), z.string()), [], [{ a: 'b' }]],
    ['booleans', z.boolean(), [true, false], [0, null]],
    ['words', z.enum(['a', 'b']), ['a', 'b'], ['c', null]],
    ['literals', z.literal('a'), ['a'], ['b', undefined]],
    [
      'optional fields',
      z.object({ a: z.string().optional() }),
      [{}, { a: 'x' }, { b: 1 }],
      [{ a: null }, [], null, 'a'],
    ],
    ['nullable fields', z.object({ a: z.string().nullish() }), [{ a: null }, {}], [{ a: 1 }]],
    ['lists', z.array(z.string()), [[], ['a']], [[1], {}, 'a']],
    ['lists with a minimum length', z.array(z.string()).min(1), [['a']], [[], [1]]],
    ['fields with a default for invalid values', z.string().catch('x'), ['a'], [1]],
    ['anything', z.unknown(), [1, null, undefined], []],
    ['a transformation with a list of unchanged values', short, ['abc'], ['abcd', 1]],
    ['a transformation without such a list', upper, [], ['A', 'a']],
    ['unknown rules', z.string().max(3), [], ['a']],
    ['texts with a format', z.email(), [], ['a@b.c']],
    ['lists with unknown rules', z.array(z.string()).max(3), [], [['a'], []]],
    ['lists with a minimum length and unknown rules', z.array(z.string()).min(1).max(3), [], [['a'], []]],
    ['lists with unknown rules and a minimum length', z.array(z.string()).max(3).min(1), [], [['a'], []]],
    ['lists with two minimum lengths', z.array(z.string()).min(3).min(2), [['a', 'b', 'c']], [['a', 'b'], []]],
    [
      'lists with one wrong element',
      z.array(z.string()),
      [],
      [
        ['a', 1],
        [1, 'a'],
      ],
    ],
    [
      'objects with a check of their own',
      z.object({ a: z.string() }).refine(({ a }) => a !== 'b'),
      [],
      [{ a: 'a' }, { a: 'b' }],
    ],
    ['fields of one type each', z.object({ a: z.string(), b: z.number() }), [{ a: '', b: 1 }], [{ a: '' }, { b: 1 }]],
    ['lists of objects', z.array(z.object({})), [[{}]], [[[]], [null], ['a']]],
    ['a transformation of another kind', z.string().pipe(z.string()), [], ['a']],
    [
      'objects that keep unknown fields',
      z.looseObject({ a: z.string() }),
      [{ a: 'b' }, { a: 'b', c: 1 }],
      [{ a: 1 }, {}],
    ],
    ['objects with a schema for unknown fields', z.object({}).catchall(z.string()), [], [{ a: 'b' }]],
    ['objects that refuse unknown fields', z.strictObject({ a: z.string() }), [], [{ a: 'b' }]],
    ['unions', z.union([z.string(), z.number()]), [], ['a']],
  ] as [string, z.ZodType, unknown[], unknown[]][]) {
    it(what, () => {
      const check = asIs(schema);
      for (const value of taken) {
        assert.equal(check(value), true, JSON.stringify(value));
        assertWithin(schema.parse(value), value);
      }
      for (const value of left) assert.equal(check(value), false, JSON.stringify(value));
    });
  }

  for (const [what, schema, object] of [
    ['a launcher', pod, launcher],
    ['a launcher that the extender watches', observedPod, { ...launcher, status: running }],
    [
      'a Lease',
      lease,
      { metadata: { name: 'a' }, spec: { holderIdentity: 'b', leaseDurationSeconds: 40, renewTime: 'c' } },
    ],
    [
      'a Node',
      node,
      {
        metadata: { name: 'a', labels: { b: 'c' } },
        status: { capacity: { cpu: '4' }, conditions: [{ type: 'Ready', status: 'True' }] },
      },
    ],
    [
      'a Node for an explanation',
      explainedNode,
      {
        metadata: { name: 'a', labels: { b: 'c' }, creationTimestamp: '2026-01-01T00:00:00Z' },
        spec: { unschedulable: true, taints: [{ key: 'a', effect: 'NoSchedule' }] },
        status: { capacity: { cpu: '4' }, allocatable: { cpu: '3' }, conditions: [{ type: 'Ready', status: 'True' }] },
      },
    ],
    [
      'a report',
      nodeTopology,
      {
        apiVersion: 'plumbline.dev/v1alpha1',
        kind: 'NodeTopology',
        metadata: { name: 'a' },
        status: {
          format: 1,
          kubeletVersion: 'v1.36.2',
          cells: [{ id: 0, cpus: '0-7' }],
          cores: ['0-1', '2-3', '4-5', '6-7'],
          sockets: [{ id: 0, cpus: '0-7' }],
          reserved: '0-1',
          cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
          topologyManager: { policy: 'single-numa-node', scope: 'pod', options: {} },
          memoryManager: { policy: 'Static', cells: [{ id: 0, memory: 1024, hugePages: { '2Mi': 512 } }] },
          distances: { '0': [10] },
          assignments: [{ podUID: 'a', container: 'compute', cpus: '2-3' }],
          physnets: [{ name: 'east', cells: '0' }],
          tunnel: { cells: '' },
          hintsNetworks: true,
          pinning: [{ podUID: 'a', namespace: 'b', podName: 'c', state: 'pinned', vcpus: 2 }],
          refusals: [{ namespace: 'b', podName: 'c', container: 'd', message: 'e' }],
          conditions: [{ type: 'a', status: 'True', reason: 'b', message: 'c', lastTransitionTime: 'd' }],
        },
      },
    ],
  ] as [string, z.ZodType, unknown][]) {
    it(`${what}: is accepted as it is; after any replacement the schema gives the same value, or is called`, () => {
      const check = asIs(schema);
      assert.equal(check(object), true);
      const paths = pathsOf(object);
      let taken = 0;
      fc.assert(
        fc.property(
          fc.array(fc.tuple(fc.constantFrom(...paths), replacements), { minLength: 1, maxLength: 3 }),
          (changes) => {
            const value = changes.reduce((done, [path, by]) => replaced(done, path, by), object);
            if (!check(value)) return;
            taken++;
            const read = schema.safeParse(value);
            assert.ok(read.success, JSON.stringify(changes));
            assertWithin(read.data, value);
          },
        ),
        { numRuns: 3000 },
      );
      assert.ok(taken > 100, `${taken} of 3,000 taken`);
    });
  }
});
