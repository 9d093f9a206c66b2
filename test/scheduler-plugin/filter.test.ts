import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import type { Pod } from '../../kube/resources.ts';
import type { LostPlaces } from '../../scheduler-plugin/cluster/fleet.ts';
import type { PodNeeds } from '../../scheduler-plugin/cluster/pod-needs.ts';
import { PredictionCache } from '../../scheduler-plugin/filter/node-verdicts.ts';
import { type ExtenderFixture, extenderOf, owned, podOf, reader, statusOf, withUid } from './extender-fixture.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';
/** The launcher of a VM on shared CPUs, with the VM's annotations. */
function launcherOf(mask: string, more: { fix?: string; labels?: object } = {}): Pod {
  const { fix, labels = { 'kubevirt.io': 'virt-launcher' } } = more;
  const annotations = { [MASK]: mask, ...(fix === undefined ? {} : { [FIX]: fix }) };
  const metadata = { name: 'vm', namespace: 'default', uid: 'masked', labels, annotations };
  return { metadata, spec: { containers: [{ name: 'compute', resources: { requests: { cpu: '200m' } } }] } } as never;
}
/** Without SMT and networks. */
const plain = (cpus: string, cores: string[]) =>
  statusOf({ cells: [{ id: 0, cpus }], cores, reserved: '0', physnets: [], tunnel: undefined });
/** CPU 2 is offline and CPU 7 is online: four CPUs, but not 0 to 3. */
const gaps = plain('0,1,3,7', ['0', '1', '3', '7']);
const four = plain('0-3', ['0', '1', '2', '3']);
describe('CPU masks at scheduling', () => {
  for (const policy of ['refuse', 'count-check'] as const)
    it(`need a live agent under --unpredictable ${policy}: without one the VM would stay paused`, () => {
      const cannot = 'CPU mask cannot be applied: node';
      const mute = extenderOf({ nodes: { n1: undefined }, policy }).filter(launcherOf('1'));
      assert.deepEqual(mute.FailedAndUnresolvableNodes, { n1: `${cannot} does not report its topology` });
      for (const fix of ['false', 'true']) {
        const { filter, state } = extenderOf({ nodes: { n1: four }, flags: { n1: 'stale' }, policy });
        const dead = filter(launcherOf('1', { fix }));
        assert.deepEqual(dead.FailedAndUnresolvableNodes, { n1: `${cannot}’s agent has stopped reporting` });
        assert.deepEqual(filter(launcherOf('all', { fix })).NodeNames, ['n1'], 'all needs no agent');
        state.setFlag('n1', 'stale', false);
        assert.deepEqual(filter(launcherOf('1', { fix })).NodeNames, ['n1']);
      }
    });

  it('are refused on a node with a quarantined report', () => {
    const { filter, state } = extenderOf({ nodes: { n1: four } });
    state.fleet.set('n1', 'quarantined', true);
    assert.deepEqual(filter(launcherOf('1')).FailedAndUnresolvableNodes, {
      n1: 'CPU mask cannot be applied: node’s report is quarantined; see its Events',
    });
    state.fleet.set('n1', 'quarantined', false);
    assert.deepEqual(filter(launcherOf('1')).NodeNames, ['n1']);
  });

  for (const [others, found] of [
    [31, true],
    [32, false],
  ] as const)
    it(`wait for a node that was not offered: ${found ? 'found' : 'not searched for'} behind ${others} without the CPUs`, () => {
      const lacking = Object.fromEntries(Array.from({ length: others }, (_, i) => [`n${i}`, four]));
      const { filter, notified } = extenderOf({ nodes: { offered: four, ...lacking, large: statusOf() } });
      filter(launcherOf('9'), ['offered']);
      assert.deepEqual(
        notified.filter((line) => line.startsWith('neverOffered')),
        found ? ['neverOffered masked large'] : [],
      );
    });

  it('fit on no node if malformed, and have no effect on pods other than launchers', () => {
    const { filter } = extenderOf({ nodes: { n1: four } });
    const { FailedAndUnresolvableNodes } = filter(launcherOf('0-'));
    assert.match(FailedAndUnresolvableNodes['n1'] ?? '', /CPU mask "0-"/);
    assert.deepEqual(filter(launcherOf('0-', { labels: {} })).NodeNames, ['n1']);
  });
});
describe('CPU masks that may fall back to all CPUs', () => {
  const elsewhere = 'another node has the CPUs of the CPU mask';
  const large = statusOf();
  const fixed = (mask: string) => launcherOf(mask, { fix: 'true' });

  it('need the one node that has their CPUs', () => {
    const { filter } = extenderOf({ nodes: { a: four, b: gaps, large, z: four } });
    const reply = filter(fixed('2:12'));
    assert.deepEqual(reply.NodeNames, ['large']);
    assert.deepEqual(reply.FailedAndUnresolvableNodes, { a: elsewhere, b: elsewhere, z: elsewhere });
  });

  it('fall back if no node has their CPUs', () => {
    const { filter } = extenderOf({ nodes: { a: four, b: gaps, large } });
    assert.deepEqual(filter(fixed('2:22')).NodeNames, ['a', 'b', 'large']);
  });
});

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
    const rows: [string, Partial<NodeTopologyStatus>, boolean][] = [
      ['free', vfs(4), true],
      ['in use', vfs(0), false],
      ['one left', vfs(1), true],
      ['not reported', {}, false],
      ['free memory', { ...vfs(4), ...memory(4) }, true],
      ['memory in use', { ...vfs(4), ...memory(0.5) }, false],
      ['a gate', { ...vfs(4), featureGates: { PodLevelResourceManagers: true } }, false],
    ];
    const nodes = Object.fromEntries(rows.map(([name, more]) => [name, statusOf({ ...SINGLE, ...more })]));
    const again = statusOf({ ...SINGLE, ...vfs(1), summary: { cpus: 16, free: 14, networks: '', reported: 'later' } });
    const { ask, since } = predictionsOf({ ...nodes, again });
    for (const [name, , fits] of rows) assert.equal(ask(needsOf('4', [VF]), name).fits, fits, name);
    assert.deepEqual(since(), Object.keys(nodes));
    assert.ok(ask(needsOf('4', [VF]), 'again').fits);
    assert.deepEqual(since(), [], 'equal but for the summary');
    assert.ok(ask(needsOf('4'), 'in use').fits, 'needs no device');
  });

  it('are not used for other pods in flight, which affect the verdict', () => {
    const { ask, since, state, assumed } = predictionsOf({ n1: statusOf(), n2: statusOf() });
    assert.ok(ask(needsOf('8'), 'n2').fits);
    assumed.set('n1', [reader.read(withUid(podOf('8'), 'in-flight'))]);
    state.fleet.setReservations('n1', 1, 8);
    assert.ok(!ask(needsOf('8'), 'n1').fits);
    assert.ok(!ask(needsOf('8'), 'n1').fits);
    assert.ok(ask(needsOf('8'), 'n2').fits);
    assert.deepEqual(since(), ['n2', 'n1']);
    assumed.clear();
    assert.ok(ask(needsOf('8'), 'n1').fits, 'those were the pod’s own');
    state.fleet.setReservations('n1', 0, 0);
    since();
    assert.ok(ask(needsOf('8'), 'n1').fits);
    assert.deepEqual(since(), []);
  });

  it('stay while a namespace has room, whatever another one asks', () => {
    const { ask, since } = predictionsOf({ n1: statusOf() });
    const needsIn = (namespace: string, name: string) => ({ ...needsOf('4'), namespace, key: name.padEnd(8000, 'x') });
    ask(needsIn('victim', 'vm'), 'n1');
    for (let i = 0; i < 3000; i++) ask(needsIn('tenant', `${i}`), 'n1');
    since();
    ask(needsIn('victim', 'vm'), 'n1');
    ask(needsIn('tenant', '2999'), 'n1');
    assert.deepEqual(since(), [], 'the newest of the other one, and all of the first');
    ask(needsIn('tenant', '0'), 'n1');
    assert.deepEqual(since(), ['n1']);
  });

  it('are made again when other pods are about to leave a node with alignment', () => {
    const assignments = [owned('ended', '1-2,9-10'), owned('other', '4,12')];
    for (const [more, times] of [[{}, 1] as const, [SINGLE, 3] as const]) {
      const gone: string[] = [];
      const { ask, since } = predictionsOf({ n1: statusOf({ ...more, assignments }) }, { gone });
      for (const uid of [undefined, 'ended', 'other']) {
        if (uid !== undefined) gone.push(uid);
        for (let i = 0; i < 3; i++) assert.ok(ask(needsOf('4'), 'n1').fits);
      }
      assert.equal(since().length, times);
    }
  });
});
