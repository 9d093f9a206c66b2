import assert from 'node:assert/strict';
import { HEALTHY, UNHEALTHY } from '../../../kube/kubelet-api/device-plugin-client.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { NetworkMapError, networkMapFor } from '../../../model/networks/network-map.ts';
import type { NodeNetworks } from '../../../model/networks/reach.ts';
import { advertisedResources, devicesOf, socketName } from '../../../node-agent/device-plugin/resources.ts';
import { NO_NETWORKS } from '../../../node-agent/networks/combine.ts';
import { hasNodeSelectors, parseNetworkMapText } from '../../../node-agent/networks/map-source.ts';

/** The map that a host with NUMA nodes 0 and 1 reads. */
const parse = (text: string, labels = {}): NodeNetworks =>
  networkMapFor(parseNetworkMapText('map.yaml', text), labels, CpuSet.parse('0-1')) ?? NO_NETWORKS;
const displayed = ({ physnets, tunnel }: NodeNetworks) => ({
  physnets: [...physnets].map(([name, cells]) => ({ name, cells: cells.toArray() })),
  tunnel: tunnel && { cells: tunnel.toArray() },
});

describe('network map', () => {
  it('gives physnets by name and the tunnel, with sorted NUMA nodes', () => {
    const text = 'physnets: {physnet0: {numaNodes: [0]}, physnet1: {numaNodes: [1, 0, 1]}}\ntunnel: {numaNodes: [1]}';
    assert.deepEqual(displayed(parse(text)), {
      physnets: [
        { name: 'physnet0', cells: [0] },
        { name: 'physnet1', cells: [0, 1] },
      ],
      tunnel: { cells: [1] },
    });
  });

  it('may be empty, or have only physnets or only the tunnel', () => {
    assert.deepEqual(displayed(parse('')), { physnets: [], tunnel: undefined });
    assert.deepEqual(displayed(parse('tunnel: {numaNodes: []}')).tunnel, { cells: [] });
  });

  it('selects entries by node labels', () => {
    const text =
      '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [0]}}\n- {nodeSelector: {rack: b}, tunnel: {numaNodes: [1]}}';
    assert.deepEqual(displayed(parse(text, { rack: 'b' })).tunnel, { cells: [1] });
    assert.deepEqual(displayed(parse(text, { rack: 'c' })).tunnel, undefined);
    assert.equal(hasNodeSelectors(parseNetworkMapText('map.yaml', text)), true);
    assert.equal(hasNodeSelectors(parseNetworkMapText('map.yaml', 'tunnel: {numaNodes: [0]}')), false);
  });

  const wrong: [string, string, RegExp][] = [
    [
      'a NUMA node that the host does not have',
      'physnets: {a: {numaNodes: [2]}}',
      /NUMA node 2 of physnet a is not on this host.*0-1/,
    ],
    ['the same for the tunnel', 'tunnel: {numaNodes: [7]}', /NUMA node 7 of the tunnel is not on this host/],
    ['a negative NUMA node', 'tunnel: {numaNodes: [-1]}', /tunnel.numaNodes/],
    ['a misspelt key', 'physnet: {a: {numaNodes: [0]}}', /physnet/],
    ['a list instead of a map', 'physnets: [a]', /physnets/],
    ['broken YAML', 'physnets: {', /map.yaml: not YAML/],
    [
      'a name that no resource can have',
      `physnets: {"${'é'.repeat(40)}": {numaNodes: [0]}}`,
      /map.yaml: .*1 to 30 bytes/,
    ],
  ];
  for (const [name, text, message] of wrong) {
    it(`refuses ${name}`, () =>
      assert.throws(
        () => parse(text),
        (error) => error instanceof NetworkMapError && message.test(error.message),
      ));
  }
});

describe('advertised resources', () => {
  const resources = advertisedResources(
    parse('physnets: {"phys net": {numaNodes: [0, 1]}}\ntunnel: {numaNodes: []}'),
    3,
  );

  it('are one for each physnet, the tunnel, and placed; the first two call the agent before a start', () => {
    assert.deepEqual(
      resources.map(({ name, preStart }) => [name, preStart]),
      [
        ['physnet.plumbline.dev/x--70687973206e6574', true],
        ['plumbline.dev/tunnel', true],
        ['plumbline.dev/placed', false],
      ],
    );
  });

  it('have the given number of devices, with their NUMA nodes if known', () => {
    const [physnet, tunnel] = resources.map(devicesOf);
    assert.equal(physnet?.length, 3);
    assert.deepEqual(physnet?.[2], {
      ID: 'x--70687973206e6574-2',
      health: HEALTHY,
      topology: { nodes: [{ ID: 0 }, { ID: 1 }] },
    });
    assert.equal(tunnel?.[0]?.topology, undefined, 'unknown is not node 0');
  });

  it('are unhealthy if no uplink has a carrier', () => {
    const down = advertisedResources(
      { physnets: new Map([['a', CpuSet.EMPTY]]), tunnel: CpuSet.EMPTY },
      1,
      new Set(['a']),
    );
    assert.deepEqual(
      down.map((resource) => devicesOf(resource)[0]?.health),
      [UNHEALTHY, HEALTHY, HEALTHY],
    );
  });

  it('have unique socket names that fit into an address', () => {
    const names = [...resources.map(({ name }) => name), `physnet.plumbline.dev/${'a'.repeat(63)}`].map(socketName);
    assert.equal(new Set(names).size, names.length);
    for (const name of names) assert.ok(`/var/lib/kubelet/device-plugins/${name}`.length <= 107, name);
  });
});
