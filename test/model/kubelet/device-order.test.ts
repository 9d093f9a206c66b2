import assert from 'node:assert/strict';
import { handOutOrder, indexPool } from '../../../model/kubelet/devices.ts';
import { topologyOfHost } from '../../../model/kubelet/topology.ts';
import { simpleHost } from './fixture.ts';

describe('model/kubelet: the order in which devices are assigned', () => {
  const topology = topologyOfHost(simpleHost(2, 4));
  const device = (id: string, nodes?: readonly number[]) => ({ id, healthy: true, ...(nodes && { nodes }) });
  const pool = indexPool(topology, {
    devices: [
      device('e', [1]),
      device('d', [0]),
      device('c', [0, 1]),
      device('b', []),
      device('a'),
      device('taken', [1]),
    ],
  });
  const available = new Set(['a', 'b', 'c', 'd', 'e']);

  it('follows the ids of available devices without a hint', () =>
    assert.deepEqual(handOutOrder(pool, available, null), ['a', 'b', 'c', 'd', 'e']));

  it('starts near the hint and ends with devices without a known node', () => {
    assert.deepEqual(handOutOrder(pool, available, 0b10), ['c', 'e', 'd', 'a', 'b']);
    assert.deepEqual(handOutOrder(pool, available, 0b01), ['c', 'd', 'e', 'a', 'b']);
  });

  it('ignores the hint if no device has a node', () => {
    const plain = indexPool(topology, { devices: [device('b'), device('a', [])] });
    assert.deepEqual(handOutOrder(plain, new Set(['a', 'b']), 0b01), ['a', 'b']);
  });
});
