import assert from 'node:assert/strict';
import jsonPatch from 'fast-json-patch';
import { virtualMachineInstance } from '../../../kube/virtual-machines.ts';
import type { ContainerChange, PodChange } from '../../../model/admission/facts.ts';
import type { NodeRequirement, NodeTerm } from '../../../model/launcher/node-selection.ts';
import { FULL_PCPUS_ANNOTATION } from '../../../model/names.ts';
import { type NadFacts, nadFacts } from '../../../model/networks/nad.ts';
import { patchFor } from '../../../webhook/pods/patch.ts';
import type { PatchOperation } from '../../../webhook/review/admission-review.ts';
import { type RealLauncher, realLaunchers, vector } from '../../support/vectors.ts';
import {
  computeCpus,
  kindOf,
  localnet,
  mutationOf,
  patched,
  patchOf,
  requestFor,
  type TestPod,
  viewOf,
  withoutNotes,
} from '../launcher-fixture.ts';

/** All changes to each of these launchers, as patches, on the nodes of `reviewOf`. */
const PATCHES = vector<Readonly<Record<string, readonly PatchOperation[]>>>('launcher-patches.json');
/** `vms/dataplane0` is a localnet on physnet0, `vms/dataplane1` on physnet1; `vms/bridge` has no physnet. */
const NETWORKS: Readonly<Record<string, NadFacts>> = {
  dataplane0: localnet('physnet0'),
  dataplane1: localnet('physnet1'),
  bridge: nadFacts({ metadata: {}, spec: { config: JSON.stringify({ type: 'bridge', bridge: 'br1' }) } }),
};
/** Nodes with two threads per core that give only whole cores, with physnet0 on NUMA node 0 and physnet1 on 1. */
function reviewOf({ vmi }: RealLauncher) {
  const view = viewOf([kindOf(2, { physnets: { physnet0: '0', physnet1: '1' } })], {
    findNad: ({ name }) => NETWORKS[name],
  });
  const instance = virtualMachineInstance.parse(vmi);
  const route = { schedulerName: 'plumbline-scheduler', away: undefined };
  return mutationOf({ view, route, lookUpVmi: async () => ({ kind: 'found', vmi: instance }) });
}
const podOf = ({ launcher }: RealLauncher) => structuredClone(launcher) as unknown as TestPod;
const requestOf = (pod: TestPod) => requestFor(pod, { namespace: 'vms' });
/** What the annotation promises, derived only from the VMI. */
function isPadded({ vmi }: RealLauncher): boolean {
  const { cpu } = (vmi.spec as { domain: { cpu: Record<string, unknown> } }).domain;
  const asks = vmi.metadata.annotations[FULL_PCPUS_ANNOTATION] !== undefined;
  return asks && cpu['dedicatedCpuPlacement'] === true && cpu['isolateEmulatorThread'] === true;
}
describe('launchers as the real KubeVirt renders them', () => {
  const launchers = realLaunchers();

  it('are 42 different launchers, each with its patch', () => {
    const names = launchers.map((launcher) => launcher.case);
    assert.deepEqual([names.length, names], [42, Object.keys(PATCHES)]);
  });

  for (const launcher of launchers)
    it(`${launcher.case}: gets the same changes as ever, with whole cores if the VM asks and isolates its emulator`, async () => {
      const pod = podOf(launcher);
      const before = computeCpus(pod);
      const after = patched(pod, await reviewOf(launcher)(requestOf(pod)));
      assert.deepEqual(withoutNotes(after), patched(pod, { allowed: true, patch: PATCHES[launcher.case]! }));
      const cpus = Number(before.limit);
      const even = `${cpus + (cpus % 2)}`;
      assert.deepEqual(computeCpus(after), isPadded(launcher) ? { request: even, limit: even } : before);
      assert.deepEqual(patchOf(await reviewOf(launcher)(requestOf(after))), [], 'a second pass changes nothing');
    });
});
const NODES: NodeRequirement[] = [
  { key: 'threads', operator: 'NotIn', values: ['2'] },
  { key: 'full-pcpus', operator: 'NotIn', values: ['true'] },
];
const TERMS = NODES.map((node) => ({ matchExpressions: [node] }));
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const change = (more: Partial<PodChange>): PodChange => ({
  containers: [],
  annotations: {},
  nodes: undefined,
  ...more,
});
const patchOfChange = (spec: object, more: Partial<PodChange>, metadata: object = {}) =>
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
  for (const [what, affinity, expected] of cases)
    it(`is correct for ${what}`, () => {
      assert.deepEqual(patchOfChange({ ...(affinity !== undefined && { affinity }) }, { nodes: NODES }), expected);
    });

  it('adds alternatives to existing terms, once', () => {
    const terms: NodeTerm[] = [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }];
    const affinity = (nodeSelectorTerms: unknown) => ({
      affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms } } },
    });
    const before = { metadata: {}, spec: affinity(terms) };
    const patch = patchFor(before, change({ nodes: NODES }));
    const { newDocument: after } = jsonPatch.applyPatch(structuredClone(before), patch as jsonPatch.Operation[], true);
    const zoned = NODES.map((node) => ({ matchExpressions: [...terms[0]!.matchExpressions!, node] }));
    assert.deepEqual(after.spec, affinity(zoned));
    assert.deepEqual(patchFor(after, change({ nodes: NODES })), []);
  });

  it('is empty if no nodes are required', () => {
    assert.deepEqual(patchOfChange({}, {}), []);
  });
});
describe('the patch of a container', () => {
  const container: ContainerChange = { list: 'containers', index: 1, cpus: undefined, resources: [] };
  const spec = (resources?: unknown) => ({ containers: [{}, { ...(resources !== undefined && { resources }) }] });

  it('creates missing resources, and is empty for an empty change', () => {
    const ten = { ...container, cpus: 10, resources: ['x/y'] };
    const amounts = { cpu: '10', 'x/y': '1' };
    const path = '/spec/containers/1/resources';
    const value = { requests: amounts, limits: amounts };
    assert.deepEqual(patchOfChange(spec(), { containers: [ten] }), [{ op: 'add', path, value }]);
    assert.deepEqual(patchOfChange(spec(null), { containers: [ten] }), [{ op: 'replace', path, value }]);
    assert.deepEqual(patchOfChange(spec([]), { containers: [ten] }), [{ op: 'replace', path, value }]);
    assert.deepEqual(patchOfChange(spec({ requests: amounts }), { containers: [ten] }), [
      { op: 'add', path: `${path}/limits`, value: amounts },
    ]);
    assert.deepEqual(patchOfChange(spec(), { containers: [container] }), []);
  });
});
describe('the patch of annotations and of the scheduler', () => {
  it('creates annotations only to set one', () => {
    assert.deepEqual(patchOfChange({}, { annotations: { a: undefined } }), []);
    assert.deepEqual(patchOfChange({}, { annotations: { a: undefined, b: '1' } }), [
      { op: 'add', path: '/metadata/annotations', value: { b: '1' } },
    ]);
    assert.deepEqual(
      patchOfChange({}, { annotations: { a: undefined, 'x/b': '1' } }, { annotations: { a: '', c: '' } }),
      [
        { op: 'remove', path: '/metadata/annotations/a' },
        { op: 'add', path: '/metadata/annotations/x~1b', value: '1' },
      ],
    );
  });
  it('sets the scheduler if one is given', () => {
    assert.deepEqual(patchOfChange({}, { scheduler: 's' }), [{ op: 'add', path: '/spec/schedulerName', value: 's' }]);
  });
});
