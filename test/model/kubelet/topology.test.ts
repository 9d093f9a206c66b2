import assert from 'node:assert/strict';
import { numaMask, numaNodes, topologyOfHost } from '../../../model/kubelet/topology.ts';
import { simpleHost } from './fixture.ts';

describe('model/kubelet: the topology of a host', () => {
  it('numbers NUMA nodes by their ids, with those that have no CPUs', () => {
    const topology = topologyOfHost(simpleHost(2, 4), [7, 5]);
    assert.deepEqual(topology.numaIds, [0, 1, 5, 7]);
    assert.deepEqual([numaMask(topology, [7, 1]), numaMask(topology, [3, 0]), numaMask(topology, [])], [0b1010, 1, 0]);
    assert.deepEqual([numaNodes(topology, 0b1010), numaNodes(topology, 0)], [[1, 7], []]);
    assert.equal(topology.counts.cells, 2);
  });
});
