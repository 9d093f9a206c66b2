import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { Fleet, type NodeFlag, NodeShapes, reportsPod, trustedShape } from '../../../scheduler-plugin/cluster/fleet.ts';
import { statusOf } from '../extender-fixture.ts';

const owned = (podUID: string, cpus: string) => ({ podUID, container: 'compute', cpus });
const FLAGS: readonly NodeFlag[] = ['exists', 'dpuHost', 'dpuDead', 'draCpu', 'stale', 'quarantined'];

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
  it('keeps each flag of each node', () => {
    const { fleet, node } = fleetOf({ n1: undefined, n2: undefined });
    const flags = (name: string) => FLAGS.filter((flag) => node(name)[flag]);
    for (const flag of FLAGS.slice(1)) {
      fleet.set('n1', flag, true);
      assert.deepEqual([flags('n1'), flags('n2')], [['exists', flag], ['exists']]);
      fleet.set('n1', flag, false);
      assert.deepEqual(flags('n1'), ['exists']);
    }
  });

  it('keeps a node while a Node, a flag, a report or a reservation needs it', () => {
    const { fleet } = fleetOf({});
    const known = () => [fleet.get('n1') !== undefined, fleet.size];
    fleet.set('n1', 'stale', false);
    fleet.setReservations('n1', 0, 0);
    fleet.removeReport('n1');
    fleet.setLabels('n1', new Map([['zone', 'a']]));
    assert.deepEqual(known(), [false, 0]);
    const steps: readonly [() => void, () => void][] = [
      ...FLAGS.map((flag) => [() => fleet.set('n1', flag, true), () => fleet.set('n1', flag, false)] as const),
      [() => fleet.setReport('n1', statusOf()), () => fleet.removeReport('n1')],
      [() => fleet.setReservations('n1', 1, 4), () => fleet.setReservations('n1', 0, 0)],
    ].map(([begin, end]) => [begin!, end!]);
    for (const [begin, end] of steps) {
      begin();
      assert.deepEqual(known(), [true, 1]);
      end();
      assert.deepEqual(known(), [false, 0]);
    }
    for (const [begin] of steps) begin();
    for (const [i, [, end]] of steps.entries()) {
      assert.deepEqual(known(), [true, 1], `${i}`);
      end();
    }
    assert.deepEqual(known(), [false, 0]);
  });

  it('reads from the report which CPUs pods own, and gives equally full nodes the same load', () => {
    const shown = [owned('a', '1-2,9-10'), owned('b', '3,11')];
    const { fleet, node, free } = fleetOf({
      n1: statusOf({ assignments: shown }),
      n2: statusOf({ assignments: [owned('c', '1-3,9-11')] }),
      n3: statusOf(),
    });
    assert.deepEqual(node('n1').assignments, shown);
    assert.deepEqual(
      [reportsPod(node('n1'), 'b'), reportsPod(node('n1'), 'c'), reportsPod(node('n3'), 'a')],
      [true, false, false],
    );
    assert.equal(`${node('n1').owned}`, '1-3,9-11');
    assert.equal(node('n1').load, node('n2').load);
    assert.notEqual(node('n1').load, node('n3').load);
    assert.match(node('n1').load, /^\d+ 1-3,9-11$/);
    assert.deepEqual(
      [free('n1'), free('n3')],
      [
        [0, 8],
        [6, 8],
      ],
    );
    fleet.setReport('n3', statusOf({ assignments: shown }));
    assert.deepEqual([free('n3'), node('n3').load === node('n1').load], [[0, 8], true]);
    fleet.setReport('n3', statusOf({ reserved: '0-1,8-9' }));
    assert.deepEqual([free('n3'), node('n3').assignments], [[4, 8], []]);
    fleet.removeReport('n3');
    const { shape, load, assignments } = node('n3');
    assert.deepEqual(
      [shape, load, assignments, free('n3'), fleet.host(node('n3'))],
      [undefined, '', [], [], undefined],
    );
  });

  it('trusts a report that is fresh and not quarantined', () => {
    const { fleet, node } = fleetOf({ n1: statusOf(), n2: undefined });
    const trusts = (name: string) => trustedShape(node(name)) !== undefined;
    assert.deepEqual([trusts('n1'), trusts('n2')], [true, false]);
    for (const flag of ['stale', 'quarantined'] as const) {
      fleet.set('n1', flag, true);
      assert.equal(trusts('n1'), false, flag);
      fleet.set('n1', flag, false);
    }
    assert.equal(trusts('n1'), true);
  });

  it('prepares a node with pods once for each report, and keeps up to 512', () => {
    const status = statusOf({ assignments: [owned('x', '1-2,9-10')] });
    const { fleet, node } = fleetOf(Object.fromEntries(Array.from({ length: 513 }, (_, i) => [`n${i}`, status])));
    const prepared = (i: number) => fleet.host(node(`n${i}`));
    const [first, second] = [prepared(0), prepared(1)];
    assert.equal(prepared(0), first);
    assert.notEqual(first, second);
    for (let i = 2; i < 512; i++) prepared(i);
    assert.equal(prepared(0), first);
    prepared(512);
    assert.equal(prepared(1), second);
    assert.notEqual(prepared(0), first, 'the oldest was forgotten');
    const last = prepared(512);
    fleet.setReport('n512', statusOf({ assignments: [owned('x', '1-3,9-11')] }));
    assert.notEqual(prepared(512), last);
    assert.notEqual(prepared(512), node('n512').shape?.empty);
    fleet.setReport('n512', statusOf());
    assert.equal(prepared(512), node('n512').shape?.empty, 'without pods it is the shape itself');
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

describe('the shapes of nodes', () => {
  it('are shared by nodes that differ only in pods, conditions and refusals', () => {
    const shapes = new NodeShapes();
    const one = shapes.take(statusOf());
    const more = {
      assignments: [owned('x', '1')],
      conditions: [],
      pinning: [],
      refusals: [{ namespace: 'a', podName: 'b', container: 'c', message: 'no' }],
    };
    assert.equal(shapes.take(statusOf(more)), one);
    const other = shapes.take(statusOf({ reserved: '0-1,8-9' }));
    assert.deepEqual([one.id, other.id], [1, 2]);
    assert.deepEqual(
      [one.empty.host.threadsPerCore, String(one.empty.reserved), String(other.empty.reserved)],
      [2, '0,8', '0-1,8-9'],
    );
  });

  for (const [nearest, isPredicted] of [
    [true, true],
    [false, false],
  ] as const) {
    it(`have ${isPredicted ? 'the nearest' : 'no'} prediction of an unknown version if nearest is ${nearest}`, () => {
      const { kubelet } = new NodeShapes(nearest).take(statusOf({ kubeletVersion: 'v1.39.0' })).empty;
      assert.equal('unpredictable' in kubelet, !isPredicted);
    });
  }

  it('are forgotten when no node uses them, and return with a new number', () => {
    const shapes = new NodeShapes();
    const one = shapes.take(statusOf());
    shapes.take(statusOf());
    shapes.release(one);
    assert.equal(shapes.take(statusOf()), one, 'one node is left');
    shapes.release(one);
    shapes.release(one);
    const again = shapes.take(statusOf());
    assert.notEqual(again, one);
    assert.equal(again.id, 2);
    shapes.release({ ...one, key: 'unknown' });
  });
});
