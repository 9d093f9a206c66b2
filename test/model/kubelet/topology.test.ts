import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { numaMask, numaNodes, topologyOfHost, withSiblings } from '../../../model/kubelet/topology.ts';
import { hostOf, shapes } from './arbitraries.ts';
import { simpleHost } from './fixture.ts';

describe('model/kubelet: the topology of a host', () => {
  it('counts and groups CPUs as the host does', () => {
    fc.assert(
      fc.property(shapes(64), fc.array(fc.nat(80)), (shape, ids) => {
        const host = hostOf(shape);
        const topology = topologyOfHost(host);
        const asked = CpuSet.of(ids);
        assert.ok(topology.cpus.equals(host.online));
        const siblings = host.cores.filter((core) => core.intersects(asked)).flatMap((core) => [...core]);
        assert.ok(withSiblings(topology, asked).equals(CpuSet.of(siblings)));
        assert.deepEqual([...topology.cores.groups.values()].map(String), host.cores.map(String));
        const perSocket = shape.cores * shape.threads * shape.cellsPerSocket;
        assert.deepEqual([topology.cpusPerCore, topology.sockets.whole], [shape.threads, perSocket]);
      }),
    );
  });

  it('has no CPUs in any group of a host without CPUs', () => {
    const topology = topologyOfHost(createHost({ cells: [{ id: 0, cpus: '' }], cores: [] }));
    const { cpusPerCore, sockets, cpusPerUncore, counts, numaIds } = topology;
    assert.deepEqual([cpusPerCore, sockets.whole, cpusPerUncore, counts.cells, numaIds], [0, 0, 0, 0, [0]]);
  });

  it('numbers NUMA nodes by their ids, with those that have no CPUs', () => {
    const topology = topologyOfHost(simpleHost(2, 4), [7, 5]);
    assert.deepEqual(topology.numaIds, [0, 1, 5, 7]);
    assert.deepEqual([numaMask(topology, [7, 1]), numaMask(topology, [3, 0]), numaMask(topology, [])], [0b1010, 1, 0]);
    assert.deepEqual([numaNodes(topology, 0b1010), numaNodes(topology, 0)], [[1, 7], []]);
    assert.equal(topology.counts.cells, 2);
  });
});
