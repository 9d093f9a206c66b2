import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { parseBridgeMappings, parseConfiguredContext } from '../../../model/networks/context.ts';
import { networkMapFor, overlayNetworkMap, parseNetworkMap } from '../../../model/networks/network-map.ts';
import type { NodeNetworks } from '../../../model/networks/reach.ts';

const host = CpuSet.parse('0-3');
function show(networks: NodeNetworks | undefined): Record<string, string> | undefined {
  if (networks === undefined) return undefined;
  const physnets = [...networks.physnets].map(([name, cells]) => [name, cells.toString()]);
  return Object.fromEntries(networks.tunnel ? [...physnets, ['(tunnel)', networks.tunnel.toString()]] : physnets);
}
describe('the network map', () => {
  it('is one entry for all nodes, or a list of entries with selectors', () => {
    const all = parseNetworkMap({ physnets: { physnet0: { numaNodes: [0] } }, tunnel: { numaNodes: [1] } });
    assert.deepEqual(show(networkMapFor(all, {}, host)), { physnet0: '0', '(tunnel)': '1' });
    const some = parseNetworkMap([
      { nodeSelector: { rack: 'a' }, physnets: { foo: { numaNodes: [1] }, baz: { numaNodes: [3, 1, 2, 1] } } },
      { nodeSelector: { rack: 'a', dpu: '' }, tunnel: { numaNodes: [0, 2] } },
    ]);
    assert.deepEqual(show(networkMapFor(some, { rack: 'a' }, host)), { foo: '1', baz: '1-3' });
    const both = { foo: '1', baz: '1-3', '(tunnel)': '0,2' };
    assert.deepEqual(show(networkMapFor(some, { rack: 'a', dpu: '' }, host)), both);
    assert.equal(networkMapFor(some, { rack: 'b' }, host), undefined);
  });

  it('may be absent, and an empty list of NUMA nodes means no affinity', () => {
    assert.deepEqual(parseNetworkMap(undefined), []);
    assert.deepEqual(parseNetworkMap(null), []);
    const map = parseNetworkMap({ physnets: { foo: { numaNodes: [] } } });
    assert.deepEqual(show(networkMapFor(map, {}, host)), { foo: '' });
  });

  const malformed: [what: string, data: unknown, says: RegExp][] = [
    ['a physnet without numaNodes', { physnets: { foo: {} } }, /physnets\.foo\.numaNodes/],
    ['-1, which means unknown', { physnets: { foo: { numaNodes: [-1] } } }, /numaNodes\.0: .*-1 means unknown/],
    ['an unknown key', { physnet: {} }, /physnet/],
    ['a physnet that JavaScript hides', JSON.parse('{"physnets":{"__proto__":{}}}'), /physnets: .*__proto__/],
    ['a label that JavaScript hides', JSON.parse('{"nodeSelector":{"__proto__":"x"}}'), /nodeSelector: .*__proto__/],
  ];
  for (const [what, data, message] of malformed)
    it(`refuses ${what}`, () => assert.throws(() => parseNetworkMap(data), { name: 'NetworkMapError', message }));

  it('refuses a NUMA node that the host does not have, and two entries for one network', () => {
    const [onA, onTunnel] = [{ physnets: { a: { numaNodes: [0] } } }, { tunnel: { numaNodes: [0] } }];
    for (const [map, message] of [
      [{ physnets: { bar: { numaNodes: [4] } } }, /NUMA node 4 of physnet bar is not on this host, which has 0-3/],
      [{ tunnel: { numaNodes: [2 ** 40] } }, /of the tunnel is not on this host/],
      [[onA, onA], /two entries for this node name physnet a/],
      [[onTunnel, onTunnel], /two entries for this node name the tunnel/],
    ] as const)
      assert.throws(() => networkMapFor(parseNetworkMap(map), {}, host), { name: 'NetworkMapError', message });
  });

  it('H4: overrides discovery for each network, and reports the drift', () => {
    const physnets = new Map(['a', 'b'].map((name, cell) => [name, CpuSet.of([cell])]));
    const discovered = { physnets, tunnel: CpuSet.of([1]) };
    const overlay = (map: object) => {
      const { networks, drift } = overlayNetworkMap(discovered, networkMapFor(parseNetworkMap(map), {}, host));
      return [
        show(networks),
        ...drift.map(({ physnet, mapped, discovered: of }) => `${physnet}: ${mapped} over ${of}`),
      ];
    };
    const mapped = { b: { numaNodes: [0] }, c: { numaNodes: [2] } };
    const all = { a: '0', b: '0', c: '2', '(tunnel)': '1' };
    const both = overlay({ physnets: mapped, tunnel: { numaNodes: [1] } });
    assert.deepEqual(both, [all, 'b: 0 over 1', 'c: 2 over undefined']);
    const moved = { a: '0', b: '1', '(tunnel)': '0' };
    assert.deepEqual(overlay({ tunnel: { numaNodes: [0] } }), [moved, 'undefined: 0 over 1']);
    assert.equal(overlayNetworkMap(discovered, undefined).networks, discovered);
  });
});

describe('the context of networks', () => {
  it('has bridge mappings in both directions, and reports ignored pairs', () => {
    const ignored: string[] = [];
    const mappings = parseBridgeMappings(' a : br-a ,, ,b,:br-c,d:,a:br-d,e:f:g,x:br-a', (pair, why) =>
      ignored.push(`${pair} ${why}`),
    );
    assert.equal(mappings.map(({ physnet, bridge }) => `${physnet}=${bridge}`).join(), 'a=br-a,e=f:g,x=br-a');
    const nothing = ['b', ':br-c', 'd:'].map((pair) => `${pair} maps nothing`);
    assert.deepEqual(ignored, [...nothing, 'a:br-d is the second for its physnet']);
    assert.deepEqual(parseBridgeMappings('b'), []);
    const { bridgePhysnets } = parseConfiguredContext({ bridgeMappings: 'a:br-a,e:f:g,x:br-a' });
    assert.deepEqual(Object.fromEntries(bridgePhysnets), { 'br-a': 'a', 'f:g': 'e' });
  });

  it('is configured by an operator', () => {
    const empty = { bridgePhysnets: new Map(), interfacePhysnets: new Map() };
    assert.deepEqual([parseConfiguredContext({}), parseConfiguredContext(null)], [empty, empty]);
    assert.deepEqual(parseConfiguredContext({ bridgeMappings: 'a:br-a', interfacePhysnets: { bond0: 'b' } }), {
      bridgePhysnets: new Map([['br-a', 'a']]),
      interfacePhysnets: new Map([['bond0', 'b']]),
    });
    assert.throws(() => parseConfiguredContext({ interfacePhysnets: { bond0: '' } }), /interfacePhysnets\.bond0: /);
    assert.throws(() => parseConfiguredContext([]), /context: the whole: /);
  });
});
