import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { type DiscoveredNetworks, locateNetworks } from '../../../node-agent/networks/locate.ts';
import type { SwitchBridge, SwitchConfig, SwitchInterface } from '../../../node-agent/networks/switch-config.ts';
import { createSysfsTree, type SysfsTree } from '../../hardware/sysfs-fixture.ts';
import { tempDirectories } from '../support.ts';

const port = (name: string, more: Partial<SwitchInterface> = {}): SwitchInterface => {
  return { name, kind: 'system', devargs: undefined, numaId: undefined, linkUp: true, ...more };
};
const dpdk = (name: string, devargs: string | undefined, more: Partial<SwitchInterface> = {}) =>
  port(name, { kind: 'dpdk', devargs, ...more });
const bridge = (
  interfaces: readonly SwitchInterface[],
  patches: Record<string, string> = {},
  internal: string[] = [],
): SwitchBridge => ({ interfaces, patches: new Map(Object.entries(patches)), internal: new Set(internal) });

/** A switch with physnet `net` on bridge br-net. */
const config = (interfaces: readonly SwitchInterface[], more: Partial<SwitchConfig> = {}): SwitchConfig => ({
  bridges: new Map([['br-net', bridge(interfaces, {}, ['br-net'])]]),
  integration: new Set(['br-int']),
  mappings: new Map([['net', ['br-net']]]),
  encapIps: [],
  hasSeveralEndpoints: false,
  pmdCpus: CpuSet.EMPTY,
  problems: [],
  ...more,
});

describe('locations of networks', () => {
  const temp = tempDirectories();
  let tree: SysfsTree;
  beforeEach(() => {
    tree = createSysfsTree(temp());
    for (const [name, address, node] of [
      ['near', '0000:18:00.0', 0],
      ['far', '0000:af:00.0', 1],
      ['unknown', '0000:3b:00.0', -1],
      ['strange', '0000:5e:00.0', 5],
    ] as const) {
      tree.pci(address, node);
      tree.nic(name, address);
    }
    tree.stacked('veth0', [], { files: { iflink: '77\n' } });
    tree.stacked('dummy0', []);
  });
  const interfaces = ['near', 'far', 'br-net', 'br-net.7', 'dummy0'];
  /** 10.0.N.1 is the address of interface N. */
  const interfaceOf = (ip: string) => interfaces[Number(/^10\.0\.(\d)\.1$/.exec(ip)?.[1])];
  const locate = (switchConfig: SwitchConfig): DiscoveredNetworks & { texts: string[] } => {
    const parts = { sysfsRoot: tree.root, cells: CpuSet.parse('0-1'), interfaceOf };
    const discovered = locateNetworks(switchConfig, parts);
    return { ...discovered, texts: discovered.doubts.map(({ text }) => text) };
  };
  const noNic = (name: string) => `no NIC is behind ${name}, so the network map must state its NUMA node`;
  const unknown = (name: string) => `physnet net: the kernel does not know the NUMA node of ${name}`;
  const NO_UPLINK = 'physnet net: bridge br-net has no uplink';

  const physnets: [string, SwitchInterface[], string, string?][] = [
    ['a NIC', [port('far')], '1'],
    ['two NICs that the switch bonds, across NUMA nodes', [port('near'), port('far')], '0-1'],
    ['a guest’s port next to the uplink is ignored', [port('far'), port('veth0')], '1'],
    ['a dummy next to hardware is ignored', [port('near'), port('dummy0')], '0'],
    ['a dummy alone has no NUMA node, which is reported', [port('dummy0')], '', `physnet net: ${noNic('dummy0')}`],
    ['a port without an interface of the kernel', [port('gone0')], '', `physnet net: ${noNic('gone0')}`],
    ['AF_XDP', [port('far', { kind: 'afxdp' })], '1'],
    ['DPDK on an interface of the kernel', [dpdk('d0', 'net_af_xdp0,iface=far')], '1'],
    ['a bond of DPDK', [dpdk('d0', 'net_bonding0,mode=1,slave=0000:18:00.0,member=0000:af:00.0')], '0-1'],
    ['-1', [port('unknown')], '', unknown('unknown')],
    ['a NUMA node without CPUs', [port('strange')], '', 'physnet net is on NUMA node 5, which has no CPUs'],
    ['no uplink', [], '', NO_UPLINK],
    ['DPDK with a short address and options', [dpdk('d0', 'AF:00.0,dv_flow_en=1')], '1'],
    ['the NUMA node that DPDK reports', [dpdk('d0', 'class=eth,mac=00:11:22:33:44:55', { numaId: 1 })], '1'],
    ['the kernel takes precedence over DPDK', [dpdk('d0', '0000:18:00.0', { numaId: 1 })], '0'],
    ['DPDK if the kernel has no NUMA node', [dpdk('d0', '0000:3b:00.0', { numaId: 1 })], '1'],
    ['DPDK without a known NUMA node', [dpdk('d0', undefined)], '', unknown('d0')],
    ['a guest’s representor', [dpdk('d0', '0000:af:00.0'), dpdk('r0', '0000:18:00.0,representor=[0]')], '1'],
  ];
  for (const [label, interfaces, cells, doubt] of physnets) {
    it(label, () => {
      const { networks, texts } = locate(config(interfaces));
      assert.equal(networks.physnets.get('net')?.toString(), cells);
      assert.deepEqual(texts, doubt === undefined ? [] : [doubt]);
    });
  }

  /** A veth pair of this network namespace: `lan0` and `lan1`. */
  const pair = () => {
    tree.stacked('lan0', [], { files: { ifindex: '31\n', iflink: '32\n' } });
    tree.stacked('lan1', [], { files: { ifindex: '32\n', iflink: '31\n' } });
  };
  const linuxBridge = (name: string, ports: string[]) => {
    tree.stacked(name, ports, { files: { 'bridge/bridge_id': '8000\n' } });
    for (const bond of ports) symlinkSync(`../${name}`, join(tree.root, 'class/net', bond, 'master'));
  };
  const [NEAR, FAR, DPDK] = [port('near'), port('far'), dpdk('d0', '0000:af:00.0')];
  const pairTo = (ports: string[]) => {
    pair();
    linuxBridge('lan', ['lan1', ...ports]);
  };
  const ways: [string, Record<string, SwitchBridge>, string, prepare?: () => void][] = [
    [
      'a chain of patch ports, with a way back',
      { 'br-net': bridge([], { a0: 'a1' }), b: bridge([], { a1: 'a0', b0: 'b1' }), c: bridge([DPDK], { b1: 'b0' }) },
      '1',
    ],
    [
      'two patch ports to bridges on different NUMA nodes',
      { 'br-net': bridge([], { a0: 'a1', b0: 'b1' }), b: bridge([NEAR], { a1: 'a0' }), c: bridge([FAR], { b1: 'b0' }) },
      '0-1',
    ],
    ['its own NIC', { 'br-net': bridge([port('near')], { p0: 'p1' }), b: bridge([port('far')], { p1: 'p0' }) }, '0'],
    [
      'the integration bridge leads to the networks of all bridges',
      {
        'br-net': bridge([], { a0: 'a1' }),
        'br-int': bridge([], { a1: 'a0', b0: 'b1' }),
        c: bridge([FAR], { b1: 'b0' }),
      },
      '',
    ],
    ['a patch port without a peer', { 'br-net': bridge([], { p0: 'gone' }) }, ''],
    ['a veth pair to a Linux bridge', { 'br-net': bridge([port('lan0'), port('veth0')]) }, '1', () => pairTo(['far'])],
    ['a veth to a bridge', { 'br-net': bridge([port('lan0')]), b: bridge([port('lan1'), port('far')]) }, '1', pair],
    ['a veth pair whose other end only has an address', { 'br-net': bridge([port('lan0')]) }, '', pair],
    [
      'a veth whose other end is in another network namespace, where its index is that of a NIC here',
      { 'br-net': bridge([port('veth0')]) },
      '',
      () => tree.files('far', { ifindex: '77\n', iflink: '77\n' }),
    ],
    [
      'an internal port in a Linux bridge over a bond',
      { 'br-net': bridge([], {}, ['br-net']) },
      '0-1',
      () => {
        tree.stacked('br-net', []);
        tree.stacked('bond0', ['near', 'far'], { slaves: true });
        linuxBridge('lan', ['br-net', 'bond0']);
      },
    ],
    [
      'an internal port in a VRF: routes decide',
      { 'br-net': bridge([], {}, ['br-net']) },
      '',
      () => {
        tree.stacked('br-net', []);
        tree.stacked('vrf0', ['br-net', 'far']);
        symlinkSync('../vrf0', join(tree.root, 'class/net/br-net/master'));
      },
    ],
  ];
  for (const [label, bridges, cells, prepare] of ways) {
    it(`a way to a NIC: ${label}`, () => {
      prepare?.();
      const { networks, texts } = locate(config([], { bridges: new Map(Object.entries(bridges)) }));
      assert.equal(networks.physnets.get('net')?.toString(), cells);
      assert.deepEqual(texts, cells === '' ? [NO_UPLINK] : []);
    });
  }

  it('a Linux bridge without a NIC as the port is reported', () => {
    linuxBridge('lan', ['dummy0']);
    assert.deepEqual(locate(config([port('lan')])).texts, [`physnet net: ${noNic('lan')}`]);
  });

  it('reports a mapping to a missing bridge; all others that OVN instances map the physnet to count', () => {
    const bridges = new Map(Object.entries({ a: bridge([port('near')]), b: bridge([port('far')]) }));
    const mappings = new Map(Object.entries({ net: ['a', 'b', 'gone'], ghost: ['br-x'] }));
    const { networks, texts } = locate(config([], { bridges, mappings }));
    assert.deepEqual([...networks.physnets].map(String), ['net,0-1']);
    assert.deepEqual(texts, ['physnet net: there is no bridge gone', 'physnet ghost: there is no bridge br-x']);
  });

  const tunnels: [string, string[], string | undefined, string?][] = [
    ['none', [], undefined],
    ['on a NIC', ['10.0.1.1'], '1'],
    ['several addresses', ['10.0.0.1', '10.0.1.1'], '0-1'],
    ['on a bridge’s own interface: at the uplinks of the bridge', ['10.0.2.1'], '1'],
    ['on a VLAN over it', ['10.0.3.1'], '1'],
    ['an address without an interface', ['10.9.9.9'], '', 'no interface has the address 10.9.9.9 (ovn-encap-ip)'],
    ['on a dummy', ['10.0.4.1'], '', noNic('dummy0')],
  ];
  for (const [label, encapIps, cells, doubt] of tunnels) {
    it(`the tunnel: ${label}`, () => {
      tree.stacked('br-net', []);
      tree.stacked('br-net.7', ['br-net']);
      const { networks, texts } = locate(config([port('far')], { encapIps }));
      assert.equal(networks.tunnel?.toString(), cells);
      assert.deepEqual(texts, doubt === undefined ? [] : [`the tunnel: ${doubt}`]);
    });
  }

  it('a tunnel’s address on a bridge without an uplink is reported', () => {
    const { networks, texts } = locate(config([], { mappings: new Map(), encapIps: ['10.0.2.1'] }));
    assert.equal(networks.tunnel?.toString(), '');
    assert.deepEqual(texts, [`the tunnel: ${noNic('br-net')}`]);
  });

  it('tunnel endpoints of several OVN instances are reported if they are on different NUMA nodes', () => {
    const textsOf = (...encapIps: string[]) =>
      locate(config([port('far')], { encapIps, hasSeveralEndpoints: true })).texts;
    const text = 'the tunnel: OVN instances have endpoints on different NUMA nodes (0-1); all of them count';
    assert.deepEqual(textsOf('10.0.0.1', '10.0.1.1'), [text]);
    assert.deepEqual(textsOf('10.0.1.1', '10.0.1.1'), []);
  });

  const links: [string, SwitchInterface[], boolean][] = [
    ['one of two uplinks has a carrier', [port('near', { linkUp: false }), port('far')], false],
    ['no uplink has a carrier', [port('near', { linkUp: false }), port('far', { linkUp: false })], true],
    ['neither the switch nor the kernel reports it', [port('far', { linkUp: undefined })], false],
    ['no uplink at all', [], false],
    ['DPDK without a link', [dpdk('d0', '0000:af:00.0', { linkUp: false })], true],
  ];
  for (const [name, interfaces, down] of links) {
    it(`down: ${name}: ${down}`, () => assert.equal(locate(config(interfaces)).down.has('net'), down));
  }
  it('down: the kernel reports no carrier and the switch reports nothing', () => {
    tree.files('far', { carrier: '0\n' });
    assert.ok(locate(config([port('far', { linkUp: undefined })])).down.has('net'));
    assert.ok(locate(config([], { mappings: new Map(), encapIps: ['10.0.1.1'] })).down.has(undefined), 'the tunnel');
  });
});
