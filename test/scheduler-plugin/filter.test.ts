import assert from 'node:assert/strict';
import type { Pod } from '../../kube/resources.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../model/names.ts';
import { podNeedsOf } from '../../scheduler-plugin/pod-needs.ts';
import type { ExtenderFixture } from './extender-fixture.ts';
import { extenderOf, podOf, statusOf } from './extender-fixture.ts';

const PHYSNET1 = 'physnet.plumbline.dev/physnet1';
const withUid = (pod: Pod, uid: string): Pod => ({ ...pod, metadata: { ...pod.metadata, uid } });
const annotated = (pod: Pod): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY } },
});
const daemonPod = (pod: Pod): Pod => ({
  ...pod,
  metadata: {
    ...pod.metadata,
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'd', controller: true }],
  },
});
const dead = { ready: false, state: 'dead', age: 61.4 } as const;
const owner = (cpus: string) => [{ podUID: 'other', container: 'compute', cpus }];

interface Case {
  readonly name: string;
  readonly pod: Pod;
  readonly fixture?: ExtenderFixture;
  /** The refusal's text, or undefined where the node must pass. */
  readonly refused?: RegExp;
  /** In which map. Default: failed. */
  readonly unresolvable?: boolean;
}

const CASES: readonly Case[] = [
  { name: 'an aligned pod on an empty node', pod: podOf('4') },
  {
    name: 'an odd pod on a full-pcpus-only node',
    pod: podOf('9'),
    refused: /SMT Alignment Error: requested 9 cpus not multiple cpus per core = 2/,
    unresolvable: true,
  },
  {
    name: 'the same on a plain static node',
    pod: podOf('9'),
    fixture: { nodes: { n1: statusOf({ cpuManager: { policy: 'static' } }) } },
  },
  {
    name: 'free threads but too few free whole cores, for a pod that was promised whole ones',
    pod: annotated(podOf('4')),
    fixture: { nodes: { n1: statusOf({ cpuManager: { policy: 'static' }, assignments: owner('1-6') }) } },
    refused: /too few free whole cores/,
  },
  { name: 'a physnet whose cell has room', pod: podOf('8', [PHYSNET1]) },
  {
    name: 'a physnet whose cell is full while the other is free',
    pod: podOf('4', [PHYSNET1]),
    fixture: { nodes: { n1: statusOf({ assignments: owner('4-6,12-14') }) } },
    refused: /no room on the NUMA nodes of a required network/,
  },
  {
    name: 'a physnet bonded over both cells',
    pod: podOf('4', [PHYSNET1]),
    fixture: {
      nodes: { n1: statusOf({ assignments: owner('4-6,12-14'), physnets: [{ name: 'physnet1', cells: '0-1' }] }) },
    },
  },
  {
    name: 'a physnet the node does not have',
    pod: podOf('4', ['physnet.plumbline.dev/elsewhere']),
    refused: /physnet elsewhere is not on the node/,
    unresolvable: true,
  },
  {
    name: 'CPUs of a bound pod that the report does not show yet',
    pod: podOf('8'),
    fixture: {
      bound: [{ uid: 'bound', node: 'n1', needs: podNeedsOf(withUid(podOf('8'), 'bound')) }],
    },
    refused: /too few free whole cores/,
  },
  {
    name: 'the same once the report shows it: counted once',
    pod: podOf('4'),
    fixture: {
      nodes: { n1: statusOf({ assignments: [{ podUID: 'bound', container: 'compute', cpus: '1-4,9-12' }] }) },
      bound: [{ uid: 'bound', node: 'n1', needs: podNeedsOf(withUid(podOf('8'), 'bound')) }],
    },
  },
  {
    name: 'a dead DPU',
    pod: podOf('4'),
    fixture: { dpus: { n1: dead } },
    refused: /DPU not ready: dead, last renewal 61 s ago/,
    unresolvable: true,
  },
  { name: 'a live DPU', pod: podOf('4'), fixture: { dpus: { n1: { ready: true, state: 'alive', age: 3 } } } },
  {
    name: 'a host-network pod on a node with a dead DPU',
    pod: { ...podOf('4'), spec: { ...podOf('4').spec, hostNetwork: true } },
    fixture: { dpus: { n1: dead } },
  },
  { name: 'a DaemonSet pod on a node with a dead DPU', pod: daemonPod(podOf('4')), fixture: { dpus: { n1: dead } } },
  {
    name: 'a node that does not report, under refuse',
    pod: podOf('4'),
    fixture: { nodes: {} },
    refused: /does not report its topology/,
    unresolvable: true,
  },
  {
    name: 'a node that does not report, under count-check',
    pod: podOf('4'),
    fixture: { nodes: {}, policy: 'count-check' },
  },
  {
    name: 'a kubelet version that is not predicted, under refuse',
    pod: podOf('4'),
    fixture: { nodes: { n1: statusOf({ kubeletVersion: 'v1.99.0' }) } },
    refused: /kubelet v1\.99\.0 is not predicted/,
    unresolvable: true,
  },
  {
    name: 'a pod on the shared pool',
    pod: podOf('1500m'),
    fixture: { nodes: { n1: statusOf({ assignments: owner('1-7,9-15') }) } },
  },
];

describe('filter', () => {
  for (const { name, pod, fixture, refused, unresolvable = false } of CASES) {
    it(`${refused === undefined ? 'passes' : 'refuses'} ${name}`, () => {
      const extender = extenderOf(fixture);
      const verdict = extender.filter({ pod, nodeNames: ['n1'] });
      if (refused === undefined) {
        assert.deepEqual(verdict, { fits: ['n1'], failed: {}, unresolvable: {} });
        assert.deepEqual(extender.refusedUids, []);
        return;
      }
      assert.deepEqual(verdict.fits, []);
      const [inside, outside] = unresolvable
        ? [verdict.unresolvable, verdict.failed]
        : [verdict.failed, verdict.unresolvable];
      assert.match(inside['n1'] ?? '', refused);
      assert.deepEqual(outside, {});
      assert.deepEqual(extender.refusedUids, ['pod-uid']);
    });
  }

  it('puts each of many nodes into exactly one place, with few texts', () => {
    const nodes = Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [
        `n${i}`,
        i % 3 === 0 ? statusOf() : statusOf({ assignments: owner(i % 3 === 1 ? '1-7,9-15' : '1-6,9-14') }),
      ]),
    );
    const nodeNames = [...Object.keys(nodes), 'unknown'];
    const { fits, failed, unresolvable } = extenderOf({ nodes }).filter({ pod: podOf('4'), nodeNames });
    const all = [...fits, ...Object.keys(failed), ...Object.keys(unresolvable)];
    assert.deepEqual([...all].sort(), [...nodeNames].sort());
    assert.ok(new Set([...Object.values(failed), ...Object.values(unresolvable)]).size <= 8);
  });
});

describe('prioritize', () => {
  it('gives whole numbers from 0 to 10, the fuller node the more', () => {
    const nodes = { empty: statusOf(), half: statusOf({ assignments: owner('1-3,9-11') }) };
    const priorities = extenderOf({ nodes }).prioritize({ pod: podOf('4'), nodeNames: ['empty', 'half'] });
    const score = Object.fromEntries(priorities.map((one) => [one.node, one.score]));
    for (const value of Object.values(score)) assert.ok(Number.isInteger(value) && value >= 0 && value <= 10);
    assert.ok((score['half'] ?? 0) > (score['empty'] ?? 0));
  });
});
