import assert from 'node:assert/strict';
import { mock } from 'node:test';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import type { Pod } from '../../../kube/resources.ts';
import { Fleet, reportsPod } from '../../../scheduler-plugin/cluster/fleet.ts';
import { type ExtenderUnderTest, extenderOf, onNode, owned, podOf, statusOf, withUid } from '../extender-fixture.ts';

const four = (uid: string) => withUid(podOf('4'), uid);
const owning = (cpus: string) => statusOf({ assignments: [owned('other', cpus)] });
const at = (time: string): NodeTopologyStatus =>
  statusOf({ summary: { cpus: 16, free: 14, networks: '', reported: `2026-11-01T${time}:00Z` } });
/** A kubelet that refuses every pod, whatever its report. */
class Refuser {
  readonly under: ExtenderUnderTest;
  #pods = 0;

  constructor(nodes: Readonly<Record<string, NodeTopologyStatus>> = { n1: statusOf() }) {
    this.under = extenderOf({ nodes, answers: 1 });
  }

  /** Places a pod and rejects it. @returns the node, or undefined if there was none */
  reject(reason = 'TopologyAffinityError', names?: readonly string[], named?: Pod): string | undefined {
    const pod = withUid(podOf('4'), `p${this.#pods++}`, { namespace: `team-${this.#pods}` });
    const [nodeName] = this.under.filter(pod, names).NodeNames;
    if (nodeName === undefined) return undefined;
    const other = named && onNode(withUid(named, `named-${this.#pods}`), nodeName);
    if (other !== undefined) this.under.see(other);
    const bound = onNode(pod, nodeName);
    this.under.see(bound);
    this.under.see(bound, { phase: 'Failed', reason });
    this.under.gone(bound);
    if (other !== undefined) this.under.gone(other);
    return nodeName;
  }

  /** Rejects as many pods as get a node within this time, one each second. */
  rejectFor(seconds: number, each: () => void = () => undefined): number[] {
    const times: number[] = [];
    for (let second = 0; second < seconds; second++) {
      if (this.reject() !== undefined) times.push(second);
      each();
      this.under.clock.now++;
    }
    return times;
  }

  fits(cpu = '4', name = 'n1'): boolean {
    return this.under.filter(withUid(podOf(cpu), 'probe'), [name]).NodeNames.length > 0;
  }
}
describe('a node whose kubelet rejected a pod that was predicted to fit', () => {
  it('gets no more such pods of its namespace, and after a second namespace of any, and says why; they go elsewhere', () => {
    // The better node for the pod, as the one whose huge pages are all in use.
    const refuser = new Refuser({ fuller: owning('1-3,9-11'), empty: statusOf() });
    assert.equal(refuser.reject('OutOfcpu'), 'fuller');
    const sibling = withUid(podOf('4'), 'sibling', { namespace: 'team-1' });
    assert.deepEqual(refuser.under.filter(sibling).NodeNames, ['empty']);
    assert.equal(refuser.reject('OutOfcpu'), 'fuller');
    const { NodeNames, FailedAndUnresolvableNodes } = refuser.under.filter(four('successor'));
    assert.deepEqual(NodeNames, ['empty']);
    assert.deepEqual(FailedAndUnresolvableNodes, { fuller: 'its kubelet refused a pod of this shape: OutOfcpu' });
    const [explained] = refuser.under.extender.explain(four('successor'), ['fuller']).map((one) => one());
    assert.ok(explained && !explained.verdict.fits && explained.verdict.kind === 'refused-by-kubelet');
  });

  const ENDS: readonly [label: string, act: (refuser: Refuser) => void, fits: boolean][] = [
    ['after 29 s', ({ under }) => (under.clock.now += 29), false],
    ['after 30 s', ({ under }) => (under.clock.now += 30), true],
    ['after a report that only has another time', ({ under }) => under.state.reportChanged('n1', at('10:20')), false],
    ['after a report with other free CPUs', ({ under }) => under.state.reportChanged('n1', owning('7,15')), true],
  ];
  for (const [label, act, fits] of ENDS)
    it(`${fits ? 'gets' : 'does not get'} such pods ${label}`, () => {
      const refuser = new Refuser({ n1: at('10:10'), n2: statusOf() });
      for (let i = 0; i < 2; i++) refuser.reject(undefined, ['n1']);
      act(refuser);
      assert.equal(refuser.fits(), fits);
    });

  it('is tried after 30 s, then after twice the time, up to ten minutes', () => {
    assert.deepEqual(new Refuser().rejectFor(3000), [0, 1, 31, 91, 211, 451, 931, 1531, 2131, 2731]);
  });

  it('is not tried more often because its report keeps changing', () => {
    const refuser = new Refuser();
    let change = 0;
    const times = refuser.rejectFor(1000, () =>
      refuser.under.state.reportChanged('n1', owning(`${1 + (change++ % 2)}`)),
    );
    assert.deepEqual([times.length, ...times.slice(0, 3)], [8, 0, 1, 2], `${times}`);
  });

  it('remains for other namespaces if pods that name their node explain the rejections, however many', () => {
    const nodes = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`n${i}`, statusOf()]));
    const refuser = new Refuser(nodes);
    for (let i = 0; i < 9; i++) assert.ok(refuser.reject('OutOfcpu', undefined, podOf('14')));
    for (const name of Object.keys(nodes)) assert.ok(refuser.fits('4', name), name);
  });

  it('is not excluded for longer by pods that were on their way', () => {
    const { filter, see, clock } = extenderOf();
    const pods = ['a', 'b', 'c'].map((uid) => four(uid));
    for (const pod of pods) assert.deepEqual(filter(pod).NodeNames, ['n1']);
    for (const pod of pods) see(onNode(pod), { phase: 'Failed', reason: 'SMTAlignmentError' });
    clock.now += 30;
    assert.deepEqual(filter(four('d')).NodeNames, ['n1']);
  });

  it('is checked again for waiting pods when the exclusion ends by itself', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const refuser = new Refuser();
      for (let i = 0; i < 2; i++) refuser.reject();
      const ended = () => refuser.under.notified.filter((line) => line === 'ended n1').length;
      mock.timers.tick(30_000);
      const before = ended();
      mock.timers.tick(100);
      assert.deepEqual([before, ended()], [0, 3]);
    } finally {
      mock.timers.reset();
    }
  });
});

const FLAGS = ['exists', 'dpuHost', 'dpuDead', 'draCpu', 'stale', 'quarantined'] as const;
function fleetOf(nodes: Readonly<Record<string, NodeTopologyStatus | undefined>>) {
  const fleet = new Fleet();
  for (const [name, status] of Object.entries(nodes)) {
    fleet.set(name, 'exists', true);
    if (status) fleet.setReport(name, status);
  }
  const node = (name: string) => fleet.get(name)!;
  /** Free CPUs by NUMA node. */
  const free = (name: string) => node(name).free.map(({ cpus }) => cpus);
  return { fleet, node, free };
}
describe('the fleet', () => {
  it('keeps a node while a Node, a flag, a report or a reservation needs it', () => {
    const { fleet } = fleetOf({});
    const fleetState = () => [fleet.get('n1') !== undefined, fleet.size];
    fleet.set('n1', 'stale', false);
    fleet.setReservations('n1', 0, 0);
    fleet.removeReport('n1');
    fleet.setLabels('n1', new Map([['zone', 'a']]));
    assert.deepEqual(fleetState(), [false, 0]);
    type Step = readonly [begin: () => void, end: () => void];
    const steps: readonly Step[] = [
      ...FLAGS.map((flag): Step => [() => fleet.set('n1', flag, true), () => fleet.set('n1', flag, false)]),
      [() => fleet.setReport('n1', statusOf()), () => fleet.removeReport('n1')],
      [() => fleet.setReservations('n1', 1, 4), () => fleet.setReservations('n1', 0, 0)],
    ];
    for (const [begin] of steps) begin();
    for (const [i, [, end]] of steps.entries()) {
      assert.deepEqual(fleetState(), [true, 1], `${i}`);
      end();
    }
    assert.deepEqual(fleetState(), [false, 0]);
  });

  it('reads from the report which CPUs pods own, and gives equally full nodes the same load', () => {
    const assignments = [owned('a', '1-2,9-10'), owned('b', '3,11')];
    const { fleet, node, free } = fleetOf({
      n1: statusOf({ assignments }),
      n2: statusOf({ assignments: [owned('c', '1-3,9-11')] }),
      n3: statusOf(),
    });
    assert.deepEqual([reportsPod(node('n1'), 'b'), reportsPod(node('n1'), 'c')], [true, false]);
    assert.equal(`${node('n1').owned}`, '1-3,9-11');
    assert.deepEqual([node('n1').load === node('n2').load, node('n1').load === node('n3').load], [true, false]);
    assert.deepEqual([...free('n1'), ...free('n3')], [0, 8, 6, 8]);
    fleet.setReport('n3', statusOf({ reserved: '0-1,8-9' }));
    assert.deepEqual(free('n3'), [4, 8]);
    fleet.removeReport('n3');
    assert.deepEqual([node('n3').load, free('n3'), fleet.host(node('n3'))], ['', [], undefined]);
  });

  it('keeps the last report of a node if a new one contradicts itself', () => {
    const { fleet, node } = fleetOf({ n1: statusOf(), n2: statusOf() });
    assert.throws(() => fleet.setReport('n1', statusOf({ cores: ['0'] })));
    assert.throws(() => fleet.setReport('n2', statusOf({ assignments: [owned('x', 'all')] })));
    assert.ok(node('n1').shape !== undefined && node('n2').shape !== undefined);
    assert.throws(() => fleet.setReport('n3', statusOf({ cores: ['0'] })));
    assert.deepEqual([fleet.get('n3'), fleet.size], [undefined, 2]);
  });
});
