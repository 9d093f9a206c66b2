import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { Fleet, type NodeFlag, NodeShapes, reportsPod } from '../../../scheduler-plugin/cluster/fleet.ts';
import { owned, statusOf } from '../extender-fixture.ts';

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
  });

  it('are forgotten when no node uses them', () => {
    const shapes = new NodeShapes();
    const [one] = [shapes.take(statusOf()), shapes.take(statusOf())];
    shapes.release(one);
    assert.equal(shapes.take(statusOf()), one, 'one node is left');
    shapes.release(one);
    shapes.release(one);
    assert.notEqual(shapes.take(statusOf()), one);
  });
});
