import assert from 'node:assert/strict';
import jsonPatch from 'fast-json-patch';
import type { ContainerChange, PodChange } from '../../../model/admission/facts.ts';
import type { NodeRequirement, NodeTerm } from '../../../model/launcher/node-selection.ts';
import { patchFor } from '../../../webhook/pods/patch.ts';

const NODES: NodeRequirement[] = [
  { key: 'threads', operator: 'NotIn', values: ['2'] },
  { key: 'full-pcpus', operator: 'NotIn', values: ['true'] },
];
const TERMS = NODES.map((one) => ({ matchExpressions: [one] }));
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

const change = (more: Partial<PodChange>): PodChange => ({
  containers: [],
  annotations: {},
  nodes: undefined,
  ...more,
});
const patchOf = (spec: object, more: Partial<PodChange>, metadata: object = {}) =>
  patchFor({ metadata: metadata as never, spec: spec as never }, change(more));

describe('the patch of an affinity', () => {
  const all = { [REQUIRED]: { nodeSelectorTerms: TERMS } };
  const at = '/spec/affinity/nodeAffinity';
  const cases: [string, unknown, unknown[]][] = [
    ['no affinity', undefined, [{ op: 'add', path: '/spec/affinity', value: { nodeAffinity: all } }]],
    ['null', null, [{ op: 'replace', path: '/spec/affinity', value: { nodeAffinity: all } }]],
    ['an affinity only for pods', { podAffinity: {} }, [{ op: 'add', path: at, value: all }]],
    [
      'only a preferred node affinity',
      { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
      [{ op: 'add', path: `${at}/${REQUIRED}`, value: { nodeSelectorTerms: TERMS } }],
    ],
    ['a required node affinity without terms', { nodeAffinity: { [REQUIRED]: {} } }, []],
    ['a required node affinity with null terms', { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: null } } }, []],
    ['a required node affinity with zero terms', { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [] } } }, []],
  ];
  for (const [what, affinity, expected] of cases) {
    it(`is correct for ${what}`, () => {
      assert.deepEqual(patchOf({ ...(affinity !== undefined && { affinity }) }, { nodes: NODES }), expected);
    });
  }

  it('adds alternatives to existing terms, once', () => {
    const terms: NodeTerm[] = [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }];
    const affinity = (nodeSelectorTerms: unknown) => ({
      affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms } } },
    });
    const before = { metadata: {}, spec: affinity(terms) };
    const patch = patchFor(before, change({ nodes: NODES }));
    const { newDocument: after } = jsonPatch.applyPatch(structuredClone(before), patch as jsonPatch.Operation[], true);
    const zoned = NODES.map((one) => ({ matchExpressions: [...terms[0]!.matchExpressions!, one] }));
    assert.deepEqual(after.spec, affinity(zoned));
    assert.deepEqual(patchFor(after, change({ nodes: NODES })), []);
  });

  it('is empty if no nodes are required', () => {
    assert.deepEqual(patchOf({}, {}), []);
  });
});

describe('the patch of a container', () => {
  const container: ContainerChange = { list: 'containers', index: 1, cpus: undefined, resources: [] };
  const spec = (resources?: unknown) => ({ containers: [{}, { ...(resources !== undefined && { resources }) }] });

  it('creates missing resources, and is empty for an empty change', () => {
    const ten = { ...container, cpus: 10, resources: ['x/y'] };
    const wanted = { cpu: '10', 'x/y': '1' };
    const path = '/spec/containers/1/resources';
    const value = { requests: wanted, limits: wanted };
    assert.deepEqual(patchOf(spec(), { containers: [ten] }), [{ op: 'add', path, value }]);
    assert.deepEqual(patchOf(spec(null), { containers: [ten] }), [{ op: 'replace', path, value }]);
    assert.deepEqual(patchOf(spec([]), { containers: [ten] }), [{ op: 'replace', path, value }]);
    assert.deepEqual(patchOf(spec({ requests: wanted }), { containers: [ten] }), [
      { op: 'add', path: `${path}/limits`, value: wanted },
    ]);
    assert.deepEqual(patchOf(spec(), { containers: [container] }), []);
  });
});

describe('the patch of annotations and of the scheduler', () => {
  it('creates annotations only to set one', () => {
    assert.deepEqual(patchOf({}, { annotations: { a: undefined } }), []);
    assert.deepEqual(patchOf({}, { annotations: { a: undefined, b: '1' } }), [
      { op: 'add', path: '/metadata/annotations', value: { b: '1' } },
    ]);
    assert.deepEqual(patchOf({}, { annotations: { a: undefined, 'x/b': '1' } }, { annotations: { a: '', c: '' } }), [
      { op: 'remove', path: '/metadata/annotations/a' },
      { op: 'add', path: '/metadata/annotations/x~1b', value: '1' },
    ]);
  });
  it('sets the scheduler if one is given', () => {
    assert.deepEqual(patchOf({}, { scheduler: 's' }), [{ op: 'add', path: '/spec/schedulerName', value: 's' }]);
  });
});
