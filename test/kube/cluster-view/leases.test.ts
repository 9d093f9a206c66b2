import assert from 'node:assert/strict';
import { hostOfHolder, Leader, nodeLease } from '../../../kube/cluster-view/leases.ts';
import { lease as leaseSchema } from '../../../kube/resources.ts';

const election = (renewTime: string, holder = 'pod-1_0f3a', duration = 8) => ({ holder, renewTime, duration });

describe('the leader of an election', () => {
  it('is known from its first reading on, for the duration that the Lease had at its last renewal', () => {
    const leader = new Leader();
    assert.equal(leader.holder, undefined);
    assert.equal(leader.hasExpired(0), true, 'there is no Lease');
    leader.leaseChanged(election('a'), 100);
    assert.deepEqual([leader.holder, leader.hasExpired(107.9), leader.hasExpired(108)], ['pod-1_0f3a', false, true]);
    leader.leaseChanged(election('b'), 107);
    assert.deepEqual([leader.hasExpired(114.9), leader.hasExpired(115)], [false, true]);
    leader.leaseChanged(election('b', undefined, 60), 108);
    assert.deepEqual([leader.silentSeconds(114), leader.hasExpired(115)], [7, true], 'a longer one, without a renewal');
    leader.leaseChanged(election('b', 'pod-2_0f3a'), 120);
    assert.equal(leader.hasExpired(120), false, 'another holder');
    leader.leaseChanged(undefined, 121);
    assert.equal(leader.holder, undefined);
  });

  it('is not silent as long as the watch is', () => {
    const leader = new Leader();
    leader.leaseChanged(election('a'), 100);
    assert.deepEqual([leader.hasExpired(200, 107.9), leader.hasExpired(200, 108)], [false, true]);
  });

  it('has the host name of its identity', () => {
    assert.deepEqual(['pod-1_0f3a', 'pod_1_0f3a', 'pod-1', ''].map(hostOfHolder), ['pod-1', 'pod_1', '', '']);
  });
});

describe('the Lease of a node', () => {
  it('has the prefix and the name of the node', () => {
    const lease = (name?: string) =>
      leaseSchema.parse({ metadata: { name }, spec: { renewTime: 'a', leaseDurationSeconds: 40 } });
    assert.deepEqual(nodeLease(lease('agent-n1'), 'agent-'), { node: 'n1', renewTime: 'a', duration: 40 });
    assert.deepEqual([nodeLease(lease('dpu-n1'), 'agent-'), nodeLease(lease(), 'agent-')], [undefined, undefined]);
  });
});
