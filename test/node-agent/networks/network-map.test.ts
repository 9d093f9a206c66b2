import assert from 'node:assert/strict';
import { HEALTHY, UNHEALTHY } from '../../../kube/kubelet-api/device-plugin-client.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import type { NodeNetworks } from '../../../model/networks/common-cell.ts';
import { NetworkMapError, networkMapFor } from '../../../model/networks/network-map.ts';
import { advertisedResources, devicesOf, socketName } from '../../../node-agent/device-plugin/resources.ts';
import { NO_NETWORKS } from '../../../node-agent/networks/combine.ts';
import { hasNodeSelectors, parseNetworkMapText } from '../../../node-agent/networks/map-file.ts';

/** The map as a host with NUMA nodes 0 and 1 reads it. */
const parse = (text: string, labels = {}): NodeNetworks =>
  networkMapFor(parseNetworkMapText('map.yaml', text), labels, CpuSet.parse('0-1')) ?? NO_NETWORKS;
const shown = ({ physnets, tunnel }: NodeNetworks) => ({
  physnets: [...physnets].map(([name, cells]) => ({ name, cells: cells.toArray() })),
  tunnel: tunnel && { cells: tunnel.toArray() },
});

describe('network map', () => {
  it('physnets by name, the tunnel, cells ascending', () => {
    const text = 'physnets: {physnet0: {numaNodes: [0]}, physnet1: {numaNodes: [1, 0, 1]}}\ntunnel: {numaNodes: [1]}';
    assert.deepEqual(shown(parse(text)), {
      physnets: [
        { name: 'physnet0', cells: [0] },
        { name: 'physnet1', cells: [0, 1] },
      ],
      tunnel: { cells: [1] },
    });
  });

  it('empty, and without one or the other', () => {
    assert.deepEqual(shown(parse('')), { physnets: [], tunnel: undefined });
    assert.deepEqual(shown(parse('tunnel: {numaNodes: []}')).tunnel, { cells: [] });
  });

  it('by node: selectors choose entries', () => {
    const text =
      '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [0]}}\n- {nodeSelector: {rack: b}, tunnel: {numaNodes: [1]}}';
    assert.deepEqual(shown(parse(text, { rack: 'b' })).tunnel, { cells: [1] });
    assert.deepEqual(shown(parse(text, { rack: 'c' })).tunnel, undefined);
    assert.equal(hasNodeSelectors(parseNetworkMapText('map.yaml', text)), true);
    assert.equal(hasNodeSelectors(parseNetworkMapText('map.yaml', 'tunnel: {numaNodes: [0]}')), false);
  });

  const wrong: [string, string, RegExp][] = [
    [
      'a NUMA node the host lacks',
      'physnets: {a: {numaNodes: [2]}}',
      /NUMA node 2 of physnet a is not on this host.*0-1/,
    ],
    ['the same for the tunnel', 'tunnel: {numaNodes: [7]}', /NUMA node 7 of the tunnel is not on this host/],
    ['a negative node', 'tunnel: {numaNodes: [-1]}', /tunnel.numaNodes/],
    ['a misspelt key', 'physnet: {a: {numaNodes: [0]}}', /physnet/],
    ['a list where a map belongs', 'physnets: [a]', /physnets/],
    ['broken YAML', 'physnets: {', /map.yaml: not YAML/],
    ['a name no resource can have', `physnets: {"${'é'.repeat(40)}": {numaNodes: [0]}}`, /map.yaml: .*1 to 30 bytes/],
  ];
  for (const [name, text, message] of wrong) {
    it(`refused: ${name}`, () =>
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

  it('one for each physnet, the tunnel, and placed; the first two wait for the agent', () => {
    assert.deepEqual(
      resources.map(({ name, preStart }) => [name, preStart]),
      [
        ['physnet.plumbline.dev/x--70687973206e6574', true],
        ['plumbline.dev/tunnel', true],
        ['plumbline.dev/placed', false],
      ],
    );
  });

  it('so many devices each, with the NUMA nodes where they are known', () => {
    const [physnet, tunnel] = resources.map(devicesOf);
    assert.equal(physnet?.length, 3);
    assert.deepEqual(physnet?.[2], {
      ID: 'x--70687973206e6574-2',
      health: HEALTHY,
      topology: { nodes: [{ ID: 0 }, { ID: 1 }] },
    });
    assert.equal(tunnel?.[0]?.topology, undefined, 'unknown is not node 0');
  });

  it('unhealthy where no uplink has a carrier', () => {
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

  it('sockets have names of their own that fit into an address', () => {
    const names = [...resources.map(({ name }) => name), `physnet.plumbline.dev/${'a'.repeat(63)}`].map(socketName);
    assert.equal(new Set(names).size, names.length);
    for (const name of names) assert.ok(`/var/lib/kubelet/device-plugins/${name}`.length <= 107, name);
  });
});
