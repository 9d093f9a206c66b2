import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { Pod } from '../../../kube/resources.ts';
import { type ExtenderUnderTest, extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const VF = 'openshift.io/sriov_vf';

/** A node of two NUMA nodes with eight CPUs each, whose VFs are on NUMA node 1. */
function nodeWith(free: number, more: Partial<NodeTopologyStatus> = {}): NodeTopologyStatus {
  return statusOf({
    topologyManager: { policy: 'single-numa-node', scope: 'container' },
    devices: [{ resource: VF, groups: [{ cells: '1', total: 8, free }] }],
    ...more,
  });
}

function vfPod(cpus: string, vfs: number, uid: string): Pod {
  const pod = podOf(cpus, [VF]);
  for (const { resources } of pod.spec?.containers ?? []) {
    for (const amounts of [resources?.requests, resources?.limits]) if (amounts !== undefined) amounts[VF] = `${vfs}`;
  }
  return withUid(pod, uid, { resourceVersion: '10' });
}

/** Why the node is refused, for people; '' if it is not. */
function detailOf({ extender }: ExtenderUnderTest, pod: Pod): string {
  const [explanation] = extender.explain(pod, ['n1']).map((one) => one());
  return explanation === undefined || explanation.verdict.fits ? '' : explanation.verdict.detail;
}

const owned = (cpus: string) => ({ assignments: [{ podUID: 'other', container: 'compute', cpus }] });

describe('a filter call for a pod with VFs', () => {
  const rows: readonly [what: string, status: NodeTopologyStatus, refusal: RegExp | undefined][] = [
    [
      'free VFs on NUMA node 1, free CPUs on NUMA node 0',
      nodeWith(8, owned('4-7,12-15')),
      /openshift\.io\/sriov_vf: free on NUMA node 1 only; its CPUs are owned/,
    ],
    ['a report without devices', nodeWith(8, { devices: undefined }), /the devices of openshift\.io\/sriov_vf are not/],
  ];
  for (const [what, status, refusal] of rows) {
    it(`${refusal === undefined ? 'passes' : 'refuses'} a node with ${what}`, () => {
      const under = extenderOf({ nodes: { n1: status } });
      const { NodeNames } = under.filter(vfPod('4', 1, 'a'));
      assert.deepEqual(NodeNames, refusal === undefined ? ['n1'] : []);
      assert.match(detailOf(under, vfPod('4', 1, 'a')), refusal ?? /^$/);
    });
  }
});

describe('filter calls for three pods with VFs in flight', () => {
  it('pass as many as have CPUs near the VFs, although the node has more free VFs and CPUs', () => {
    const under = extenderOf({ nodes: { n1: nodeWith(8) } });
    const replies = ['a', 'b', 'c'].map((uid) => under.filter(vfPod('4', 1, uid)));
    assert.deepEqual(
      replies.map(({ NodeNames }) => NodeNames.length),
      [1, 1, 0],
    );
    assert.match(detailOf(under, vfPod('4', 1, 'c')), /sriov_vf: free on NUMA node 1 only; its CPUs are owned/);
  });
});
