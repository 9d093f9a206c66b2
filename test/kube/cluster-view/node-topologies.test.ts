import assert from 'node:assert/strict';
import { NodeShapes } from '../../../kube/cluster-view/node-topologies.ts';
import { owned, statusOf } from '../../scheduler-plugin/extender-fixture.ts';

describe('the shapes of nodes', () => {
  it('are shared by nodes that differ only in pods, conditions and refusals', () => {
    const shapes = new NodeShapes(() => ({ prepared: true }));
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
    const shapes = new NodeShapes(() => ({ prepared: true }));
    const [one] = [shapes.take(statusOf()), shapes.take(statusOf())];
    shapes.release(one);
    assert.equal(shapes.take(statusOf()), one, 'one node is left');
    shapes.release(one);
    shapes.release(one);
    assert.notEqual(shapes.take(statusOf()), one);
  });
});
