import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { LostPlaces } from '../../../scheduler-plugin/cluster/lost-places.ts';
import type { PodNeeds } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { PredictionCache } from '../../../scheduler-plugin/filter/prediction-cache.ts';
import { type ExtenderFixture, extenderOf, owned, podOf, reader, statusOf, withUid } from '../extender-fixture.ts';

const needsOf = (cpu: string, resources: readonly string[] = []) => reader.read(podOf(cpu, resources));
const SINGLE = { topologyManager: { policy: 'single-numa-node', scope: 'container' } };

/** Predictions for the nodes of a cluster, and the nodes for which one was computed. */
function predictionsOf(nodes: ExtenderFixture['nodes'], { gone = [] as string[] } = {}) {
  const { state } = extenderOf({ ...(nodes && { nodes }) });
  const { fleet } = state;
  const made: string[] = [];
  const host = fleet.host.bind(fleet);
  fleet.host = (node) => {
    made.push(node.name);
    return host(node);
  };
  const assumed = new Map<string, PodNeeds[]>();
  const lostPlaces = { goneFrom: () => new Set(gone) } as unknown as LostPlaces;
  const predictions = new PredictionCache({ state: { fleet, lostPlaces }, unpredictable: 'refuse' });
  const ask = (needs: PodNeeds, node: string) => predictions.verdict(needs, fleet.get(node)!, assumed.get(node) ?? []);
  const since = () => made.splice(0);
  return { state, ask, since, assumed };
}

describe('shared predictions', () => {
  it('are computed once for equal nodes with equal load and for pods with equal needs', () => {
    const half = statusOf({ assignments: [owned('x', '1-3,9-11')] });
    const { ask, since } = predictionsOf({ n1: statusOf(), n2: statusOf(), full: half });
    for (const node of ['n1', 'n2', 'n1', 'full', 'full']) assert.ok(ask(needsOf('4'), node).fits);
    assert.deepEqual(since(), ['n1', 'full']);
    assert.ok(ask(needsOf('6'), 'n1').fits);
    assert.ok(!ask(needsOf('14'), 'full').fits);
    assert.ok(!ask(needsOf('14'), 'full').fits);
    assert.deepEqual(since(), ['n1', 'full']);
  });

  it('are computed again for nodes whose devices, memory or state of the kubelet differ', () => {
    const VF = 'vendor.example/vf';
    const vfs = (free: number) => ({ devices: [{ resource: VF, groups: [{ cells: '0', total: 4, free }] }] });
    const memory = (gib: number) => ({
      memoryManager: {
        policy: 'Static',
        cells: [0, 1].map((id) => {
          const free = { memory: gib * 2 ** 30 };
          return { id, memory: 4 * 2 ** 30, state: { blocks: gib === 4 ? 0 : 1, group: `${id}`, free } };
        }),
      },
    });
    const rows: [string, NodeTopologyStatus, boolean][] = [
      ['free', statusOf({ ...SINGLE, ...vfs(4) }), true],
      ['in use', statusOf({ ...SINGLE, ...vfs(0) }), false],
      ['one left', statusOf({ ...SINGLE, ...vfs(1) }), true],
      ['not reported', statusOf(SINGLE), false],
      ['free memory', statusOf({ ...SINGLE, ...vfs(4), ...memory(4) }), true],
      ['memory in use', statusOf({ ...SINGLE, ...vfs(4), ...memory(0.5) }), false],
      ['a gate', statusOf({ ...SINGLE, ...vfs(4), featureGates: { PodLevelResourceManagers: true } }), false],
    ];
    const nodes = Object.fromEntries(rows.map(([name, status]) => [name, status]));
    const again = statusOf({ ...SINGLE, ...vfs(1), summary: { cpus: 16, free: 14, networks: '', reported: 'later' } });
    const { ask, since } = predictionsOf({ ...nodes, again });
    for (const [name, , fits] of rows) assert.equal(ask(needsOf('4', [VF]), name).fits, fits, name);
    assert.deepEqual(
      since(),
      rows.map(([name]) => name),
    );
    assert.ok(ask(needsOf('4', [VF]), 'again').fits);
    assert.deepEqual(since(), [], 'equal but for the summary');
    assert.ok(ask(needsOf('4'), 'in use').fits, 'needs no device');
  });

  it('are not used for a node with pods in flight, which affect the verdict', () => {
    const { ask, since, state, assumed } = predictionsOf({ n1: statusOf(), n2: statusOf() });
    assert.ok(ask(needsOf('8'), 'n2').fits);
    assumed.set('n1', [reader.read(withUid(podOf('8'), 'in-flight'))]);
    state.fleet.setReservations('n1', 1, 8);
    assert.ok(!ask(needsOf('8'), 'n1').fits);
    assert.ok(!ask(needsOf('8'), 'n1').fits);
    assert.ok(ask(needsOf('8'), 'n2').fits);
    assert.deepEqual(since(), ['n2', 'n1', 'n1']);
    assumed.clear();
    assert.ok(ask(needsOf('8'), 'n1').fits, 'those were the pod’s own');
    state.fleet.setReservations('n1', 0, 0);
    since();
    assert.ok(ask(needsOf('8'), 'n1').fits);
    assert.deepEqual(since(), []);
  });

  it('are not used if pods are about to leave a node with alignment', () => {
    const assignments = [owned('ended', '1-2,9-10')];
    for (const [more, times] of [
      [{}, 1],
      [SINGLE, 3],
    ] as const) {
      const { ask, since } = predictionsOf({ n1: statusOf({ ...more, assignments }) }, { gone: ['ended'] });
      for (let i = 0; i < 3; i++) assert.ok(ask(needsOf('4'), 'n1').fits);
      assert.equal(since().length, times);
    }
    const stays = predictionsOf({ n1: statusOf({ ...SINGLE, assignments }) });
    for (let i = 0; i < 3; i++) assert.ok(stays.ask(needsOf('4'), 'n1').fits);
    assert.equal(stays.since().length, 1);
  });
});
