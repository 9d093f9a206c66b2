import assert from 'node:assert/strict';
import type { Pod } from '../../../kube/resources.ts';
import { extenderOf, podOf, statusOf, withUid } from '../extender-fixture.ts';

const ZONE = 'topology.kubernetes.io/zone';
const term = (topologyKey: string) => ({ weight: 100, podAffinityTerm: { topologyKey, labelSelector: {} } });
const preferred = (...terms: object[]) => ({ preferredDuringSchedulingIgnoredDuringExecution: terms });

const CASES: readonly { readonly name: string; readonly spec: object; readonly zones: number }[] = [
  { name: 'no constraint', spec: {}, zones: 1 },
  { name: 'preferred pod anti-affinity', spec: { affinity: { podAntiAffinity: preferred(term(ZONE)) } }, zones: 3 },
];

const full = statusOf({ assignments: [{ podUID: 'x', container: 'c', cpus: '1-7,9-15' }] });

/** Nodes a0, a1, …: the zone is the first letter. CPUs are scarce, so one node is returned while other pods wait. */
function cluster(zones: readonly string[], nodes: number, status = (_: string) => statusOf()) {
  const names = zones.flatMap((zone) => Array.from({ length: nodes }, (_, i) => `${zone}${i}`));
  const under = extenderOf({ nodes: Object.fromEntries(names.map((name) => [name, status(name)])) });
  for (const name of names) {
    under.state.nodeChanged(name, { dpuHost: false, labels: new Map([[ZONE, name[0]!]]) });
  }
  const ask = (uid: string, spec: object, cpu = '4') => {
    const pod = withUid(podOf(cpu), uid);
    return under.filter({ ...pod, spec: { ...pod.spec, ...spec } } as Pod, names, 20).NodeNames;
  };
  return { ...under, names, ask };
}
const ANTI = { affinity: { podAntiAffinity: preferred(term(ZONE)) } };
const zonesOf = (nodes: readonly string[]) => [...new Set(nodes.map((name) => name[0]))].sort().join('');

describe('soft constraints while other pods are in flight', () => {
  for (const { name, spec, zones } of CASES) {
    it(`${name}: nodes of ${zones} of three zones are returned`, () => {
      const answered = cluster(['a', 'b', 'c'], 4).ask('p', spec);
      assert.equal(zonesOf(answered).length, zones, answered.join());
      assert.equal(answered.length, zones, 'one node a zone');
    });
  }

  it('a zone without room is skipped, and the search in it is limited', () => {
    const { ask } = cluster(['a', 'b', 'c'], 12, (name) => (name.startsWith('b') ? full : statusOf()));
    assert.equal(zonesOf(ask('p', ANTI)), 'ac');
  });

  it('nodes of at most 16 domains of a key are returned', () => {
    const zones = [...'abcdefghijklmnopqrstuvwxyz'];
    assert.equal(cluster(zones, 1).ask('p', ANTI).length, 16);
  });

  it('four nodes are returned for a key with unknown domains, such as the host name', () => {
    const byHost = { affinity: { podAntiAffinity: preferred(term('kubernetes.io/hostname')) } };
    assert.equal(cluster(['a', 'b', 'c'], 4).ask('p', byHost).length, 4);
  });

  it('a moved node counts in its new zone, and a deleted node does not count', () => {
    const { ask, state } = cluster(['a', 'b'], 1);
    assert.equal(ask('p', ANTI).length, 2);
    state.nodeChanged('b0', { dpuHost: false, labels: new Map([[ZONE, 'a']]) });
    assert.equal(ask('p', ANTI).length, 1);
    state.nodeChanged('b0', undefined);
    state.reportChanged('b0', undefined);
    assert.equal(ask('p', ANTI).length, 1);
  });
});
