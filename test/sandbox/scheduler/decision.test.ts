import assert from 'node:assert/strict';
import type { JsonRecord, KubeNode, KubePod } from '../../../sandbox/objects.ts';
import { podRequests } from '../../../sandbox/pod-requests.ts';
import { filterNode } from '../../../sandbox/scheduler/decision.ts';
import { podOf } from '../support.ts';

const nodeWith = (spec: object, ready = 'True') =>
  ({
    metadata: { name: 'n', labels: { zone: 'a' } },
    spec,
    status: { allocatable: { cpu: '8', pods: '2' }, conditions: [{ type: 'Ready', status: ready }] },
  }) as unknown as KubeNode;
const podWith = (spec: JsonRecord = {}, resources: JsonRecord = {}) => podOf('p', resources, spec) as KubePod;

describe('scheduler: built-in filters', () => {
  const taints = [{ key: 'k', value: 'v', effect: 'NoSchedule' }];
  for (const [what, pod, node, reason] of [
    ['not ready', podWith(), nodeWith({}, 'False'), 'had untolerated taint {node.kubernetes.io/not-ready: }'],
    ['tainted', podWith(), nodeWith({ taints }), 'had untolerated taint {k: v}'],
    [
      'a failing selector',
      podWith({ nodeSelector: { zone: 'b' } }),
      nodeWith({}),
      "didn't match Pod's node affinity/selector",
    ],
    ['unschedulable', podWith(), nodeWith({ unschedulable: true }), 'were unschedulable'],
  ] as const) {
    it(`${what}: node(s) ${reason}`, () => {
      const misfit = filterNode(pod, podRequests(pod), node, { requested: new Map(), pods: 0 });
      assert.deepEqual(misfit, { reasons: [`node(s) ${reason}`], unresolvable: true });
    });
  }
  it('resources of other pods are subtracted', () => {
    const load = { requested: new Map([['cpu', 7_000_000_000n]]), pods: 2 };
    const pod = podWith({}, { requests: { cpu: '2' } });
    const reasons = ['Too many pods', 'Insufficient cpu'];
    assert.deepEqual(filterNode(pod, podRequests(pod), nodeWith({}), load), { reasons, unresolvable: false });
  });
});
