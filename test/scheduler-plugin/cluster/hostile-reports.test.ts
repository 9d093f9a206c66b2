import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { Pod } from '../../../kube/resources.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

describe('reports that cannot be true', () => {
  it('are quarantined until a correct one arrives, and other nodes are not affected', () => {
    const { state, filter, notified } = extenderOf({ nodes: { liar: undefined, honest: statusOf() } });
    for (const node of ['liar', 'honest']) state.nodeChanged(node, { dpuHost: false, cpus: 16, arch: 'amd64' });
    const before = filter(podOf('4'), ['honest']);
    state.reportChanged('liar', statusOf({ cells: [{ id: 0, cpus: '0-15' }], cores: ['0-7', '8-15'] }));
    assert.equal(state.faults.get('liar')?.code, 'threads-per-core');
    assert.ok(notified.includes('quarantined liar'));
    const reply = filter(podOf('4'), ['liar', 'honest']);
    assert.deepEqual(reply.NodeNames, before.NodeNames);
    assert.match(reply.FailedAndUnresolvableNodes['liar'] ?? '', /is quarantined|does not report/);
    state.reportChanged('liar', statusOf());
    assert.equal(state.faults.size, 0);
    assert.deepEqual(filter(podOf('4'), ['liar']).NodeNames, ['liar']);
  });

  it('a Node that arrives after its report is compared with it, too', () => {
    const { state } = extenderOf({ nodes: { n1: statusOf() } });
    state.nodeChanged('n1', { dpuHost: false, cpus: 8, arch: 'amd64' });
    assert.equal(state.faults.get('n1')?.code, 'more-cpus');
    state.nodeChanged('n1', { dpuHost: false, cpus: 16, arch: 'amd64' });
    assert.equal(state.faults.size, 0);
    state.reportChanged('n1', statusOf({ devices: vfs(8) }));
    const capacities = [4, 8, 0].map((count) => {
      state.nodeChanged('n1', { dpuHost: false, cpus: 16, capacity: new Map([['example.com/vf', count]]) });
      return state.faults.get('n1')?.code;
    });
    assert.deepEqual(capacities, ['more-devices', undefined, undefined], '0 while its kubelet restarts');
  });

  it('a report that names a pod of another node frees no CPUs there', () => {
    const { state, filter, see } = extenderOf({ nodes: { n1: statusOf(), liar: statusOf() } });
    const first = withUid(podOf('14'), 'first');
    assert.deepEqual(filter(first, ['n1']).NodeNames, ['n1']);
    see({ ...first, spec: { ...first.spec, nodeName: 'n1' } });
    const assignments = [{ podUID: 'first', container: 'compute', cpus: '2-3' }];
    state.reportChanged('liar', statusOf({ assignments }));
    assert.deepEqual(filter(withUid(podOf('4'), 'second'), ['n1']).NodeNames, [], 'its CPUs are still reserved');
  });
});

describe('refusals by the agent of a node', () => {
  const bound = withUid(podOf('4'), 'vm');
  const onNode: Pod = { ...bound, spec: { ...bound.spec, nodeName: 'n1' } };
  const refusal = { podUID: 'vm', namespace: 'default', podName: 'vm', container: 'compute', message: 'split core' };

  it('count only for pods on that node', () => {
    const { state, see, filter, notified, clock } = extenderOf({ nodes: { n1: statusOf(), n2: statusOf() } });
    see(onNode, { phase: 'Pending' });
    state.reportChanged('n2', statusOf({ refusals: [refusal] }));
    assert.equal(state.hostRefusals.of('n1', { uid: 'vm', namespace: 'default', name: 'vm' }), undefined);
    notified.length = 0;
    state.reportChanged('n1', statusOf({ refusals: [refusal] }));
    assert.ok(notified.includes('starting vm'), 'the controller for evictions checks the pod again');
    assert.equal(state.hostRefusals.of('n1', { uid: 'vm', namespace: 'default', name: 'vm' }), 'split core');
    const again = withUid(podOf('4'), 'again');
    assert.match(filter(again, ['n1']).FailedAndUnresolvableNodes['n1'] ?? '', /agent has refused/);
    clock.now += 30;
    state.reportChanged('n1', statusOf({ refusals: [refusal] }));
    assert.deepEqual(filter(again, ['n1']).NodeNames, ['n1'], 'a repeated refusal is not new');
    assert.equal(state.hostRefusals.of('n1', { uid: 'another', namespace: 'default', name: 'vm' }), undefined);
  });
});

function vfs(total: number, resource = 'example.com/vf'): NodeTopologyStatus['devices'] {
  return [{ resource, groups: [{ cells: '0', total, free: total }] }];
}
