import assert from 'node:assert/strict';
import { HEALTHY } from '../../kube/kubelet-api/device-plugin-client.ts';
import { advertisedResources, devicesOf, socketName } from '../../node-agent/device-plugin/resources.ts';
import { NetworkMapError, parseNetworkMap } from '../../node-agent/networks/network-map.ts';

const parse = (text: string) => parseNetworkMap('map.yaml', text, [0, 1]);

describe('network map', () => {
  it('physnets by name, the tunnel, cells ascending', () => {
    const text = 'physnets: {physnet1: {numaNodes: [1, 0, 1]}, physnet0: {numaNodes: [0]}}\ntunnel: {numaNodes: [1]}';
    assert.deepEqual(parse(text), {
      physnets: [
        { name: 'physnet0', cells: [0] },
        { name: 'physnet1', cells: [0, 1] },
      ],
      tunnel: { cells: [1] },
    });
  });

  it('empty, and without one or the other', () => {
    assert.deepEqual(parse(''), { physnets: [], tunnel: undefined });
    assert.deepEqual(parse('tunnel: {numaNodes: []}').tunnel, { cells: [] });
  });

  const wrong: [string, string, RegExp][] = [
    [
      'a NUMA node the host lacks',
      'physnets: {a: {numaNodes: [2]}}',
      /physnet a: this host has no NUMA node 2.*only 0, 1/,
    ],
    ['the same for the tunnel', 'tunnel: {numaNodes: [7]}', /tunnel: this host has no NUMA node 7/],
    ['a negative node', 'tunnel: {numaNodes: [-1]}', /tunnel.numaNodes/],
    ['a misspelt key', 'physnet: {a: {numaNodes: [0]}}', /physnet/],
    ['a list where a map belongs', 'physnets: [a]', /physnets/],
    ['broken YAML', 'physnets: {', /not YAML/],
    ['a name no resource can have', `physnets: {"${'é'.repeat(40)}": {numaNodes: [0]}}`, /1 to 30 bytes/],
  ];
  for (const [name, text, message] of wrong) {
    it(`refused: ${name}`, () =>
      assert.throws(
        () => parse(text),
        (error) => error instanceof NetworkMapError && message.test(error.message) && /map.yaml/.test(error.message),
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

  it('sockets have names of their own that fit into an address', () => {
    const names = [...resources.map(({ name }) => name), `physnet.plumbline.dev/${'a'.repeat(63)}`].map(socketName);
    assert.equal(new Set(names).size, names.length);
    for (const name of names) assert.ok(`/var/lib/kubelet/device-plugins/${name}`.length <= 107, name);
  });
});
