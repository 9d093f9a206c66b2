import assert from 'node:assert/strict';
import { podRequestOf } from '../../../model/kubelet/pod-request.ts';
import type { HostReport } from '../../../model/kubelet/report.ts';
import { nearResource, physnetResource, TUNNEL_RESOURCE } from '../../../model/names.ts';
import { container, pod } from '../kubelet/fixture.ts';
import { node, physnet, place, TUNNEL } from './fixture.ts';

const WEST = nearResource(physnetResource('west'));
/** A pod that prefers the network on the NUMA node with CPUs 8-15. */
const prefers = (uid: string, cpus: number, resource = WEST) => ({
  request: podRequestOf(pod(uid, [container('compute', cpus, { [resource]: '1' })])),
  networks: [resource === WEST ? physnet('west', 'preferred') : { ...TUNNEL, affinity: 'preferred' as const }],
});
const owned = (cpus: string) => [{ podUID: 'other', container: 'compute', cpus }];

/** The CPUs that the prediction assigns, or why the node is refused. */
function outcome(
  report: Partial<HostReport>,
  needs = prefers('a', 4),
  assumed: Parameters<typeof place>[2] = [],
): string {
  const placement = place(needs, node({ hintsNetworks: true, ...report }), assumed);
  if (placement.outcome === 'admitted') return placement.containers.map(({ cpus }) => `${cpus}`).join(' ');
  return placement.outcome === 'refused' ? placement.refusal.reason : placement.outcome;
}

describe('a preferred network as a hint for the kubelet', () => {
  it('moves the pod to its NUMA node while that one has the most free CPUs', () => {
    assert.equal(outcome({}), '8-11');
    assert.equal(outcome({}, prefers('a', 4, nearResource(TUNNEL_RESOURCE))), '8-11');
  });

  it('does not move the pod if its NUMA node has fewer free CPUs: the pod is whole on the other one', () => {
    assert.equal(outcome({ assignments: owned('8-13') }), '2-5');
  });

  it('does not move the pod if the agent does not serve it, or under policies that would refuse the pod', () => {
    assert.equal(outcome({ hintsNetworks: undefined }), '2-5');
    for (const policy of ['none', 'restricted', 'single-numa-node']) {
      assert.equal(outcome({ topologyManager: { policy, scope: 'container' } }), '2-5', policy);
      const full = { topologyManager: { policy, scope: 'container' }, assignments: owned('8-15') };
      assert.equal(outcome(full), '2-5', `${policy}, with its NUMA node full`);
    }
  });

  it('gives a better score than without the hint, and than on a node without the network', () => {
    const score = (report: Partial<HostReport>) => {
      const placement = place(prefers('a', 4), node(report));
      assert.equal(placement.outcome, 'admitted');
      return placement.outcome === 'admitted' ? placement.score : 0;
    };
    assert.ok(score({ hintsNetworks: true }) > score({}));
    assert.ok(score({}) > score({ physnets: [], tunnel: undefined }));
  });

  it('counts pods in flight that may change the hint, and refuses a place where the pod would be split', () => {
    // After 6 CPUs on NUMA node 1, a remaining hint would split a pod of 4; without it, the pod is whole on node 0.
    assert.equal(outcome({}, prefers('b', 4), [prefers('a', 6)]), 'in-flight');
    assert.equal(outcome({}, prefers('b', 2), [prefers('a', 6)]), '14-15');
    assert.equal(outcome({ hintsNetworks: undefined }, prefers('b', 4), [prefers('a', 6)]), '8-11');
  });
});

describe('the resource of a preferred network', () => {
  it('has its own name for each network, even for a physnet called tunnel', () => {
    const names = ['east', 'tunnel', 'phys net', 'x--east'].map((name) => nearResource(physnetResource(name)));
    const all = [...names, nearResource(TUNNEL_RESOURCE)];
    assert.equal(new Set(all).size, all.length, all.join());
    for (const name of all) assert.match(name, /^near\.plumbline\.dev\/[a-z0-9][-a-z0-9_.]{0,61}[a-z0-9]$/);
  });
});
