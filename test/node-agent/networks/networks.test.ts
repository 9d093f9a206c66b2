import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { createServer, type Socket } from 'node:net';
import os from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { NetworkMapError } from '../../../model/networks/network-map.ts';
import { combineNetworks, type NetworkSources } from '../../../node-agent/networks/combine.ts';
import { type DiscoveredNetworks, locateNetworks } from '../../../node-agent/networks/locate.ts';
import {
  createLastMapFile,
  createMapMemory,
  type LastMap,
  type MapSources,
  parseNetworkMapText,
  readNetworkMap,
} from '../../../node-agent/networks/map-source.ts';
import { createNetworks, type NetworksDeps } from '../../../node-agent/networks/networks.ts';
import type { SwitchConfig, SwitchInterface } from '../../../node-agent/networks/switch-config.ts';
import { createJsonStream } from '../../../node-agent/open-vswitch/ovsdb/json-stream.ts';
import { createSysfsTree, type SysfsTree } from '../../hardware/sysfs-tree.ts';
import { processorTime } from '../../support/processor-time.ts';
import { eventually, recordingLogger, replaceFile, tempDirectories, writeTree } from '../support.ts';

const set = (text: string) => CpuSet.parse(text);
const host = createHost({
  cells: [
    { id: 0, cpus: '0-3' },
    { id: 1, cpus: '4-7' },
  ],
  cores: ['0-1', '2-3', '4-5', '6-7'],
});

const port = (name: string, more: Partial<SwitchInterface> = {}): SwitchInterface => ({
  name,
  kind: 'system',
  devargs: undefined,
  numaId: undefined,
  linkUp: true,
  ...more,
});
const dpdk = (name: string, devargs: string | undefined, more: Partial<SwitchInterface> = {}) =>
  port(name, { kind: 'dpdk', devargs, ...more });

/** A switch with physnet `net` on bridge br-net. */
const config = (interfaces: readonly SwitchInterface[], more: Partial<SwitchConfig> = {}): SwitchConfig => ({
  bridges: new Map([['br-net', { internal: new Set(['br-net']), patches: new Map(), interfaces }]]),
  integration: new Set(['br-int']),
  mappings: new Map([['net', ['br-net']]]),
  encapIps: [],
  hasSeveralEndpoints: false,
  pmdCpus: CpuSet.EMPTY,
  polls: false,
  problems: [],
  ...more,
});

describe('locations of networks', () => {
  const temp = tempDirectories();
  let tree: SysfsTree;
  beforeEach(() => {
    tree = createSysfsTree(temp());
    tree.pci('0000:18:00.0', 0);
    tree.pci('0000:af:00.0', 1);
    tree.pci('0000:3b:00.0', -1);
    tree.pci('0000:5e:00.0', 5);
    tree.nic('near', '0000:18:00.0');
    tree.nic('far', '0000:af:00.0');
    tree.nic('unknown', '0000:3b:00.0');
    tree.nic('strange', '0000:5e:00.0');
    tree.stacked('veth0', [], { files: { iflink: '77\n' } });
    tree.stacked('dummy0', []);
  });
  const addresses = new Map([
    ['10.0.0.1', 'near'],
    ['10.0.1.1', 'far'],
    ['10.0.2.1', 'br-net'],
  ]);
  const locate = (one: SwitchConfig): DiscoveredNetworks =>
    locateNetworks(one, { sysfsRoot: tree.root, cells: set('0-1'), interfaceOf: (ip) => addresses.get(ip) });

  const physnets: [string, SwitchInterface[], string, string[]][] = [
    ['a NIC', [port('far')], '1', []],
    ['two NICs that the switch bonds, across NUMA nodes', [port('near'), port('far')], '0-1', []],
    ['a guest’s port next to the uplink is ignored', [port('far'), port('veth0')], '1', []],
    ['a dummy next to hardware is ignored', [port('near'), port('dummy0')], '0', []],
    [
      'a dummy alone has no NUMA node, which is reported',
      [port('dummy0')],
      '',
      ['physnet net: no NIC is behind dummy0, so the network map must state its NUMA node'],
    ],
    [
      'a port without an interface of the kernel is reported',
      [port('gone0')],
      '',
      ['physnet net: no NIC is behind gone0, so the network map must state its NUMA node'],
    ],
    ['AF_XDP', [port('far', { kind: 'afxdp' })], '1', []],
    ['DPDK on an interface of the kernel', [dpdk('d0', 'net_af_xdp0,iface=far')], '1', []],
    ['a bond of DPDK', [dpdk('d0', 'net_bonding0,mode=1,slave=0000:18:00.0,member=0000:af:00.0')], '0-1', []],
    ['-1', [port('unknown')], '', ['physnet net: the kernel does not know the NUMA node of unknown']],
    ['a NUMA node without CPUs', [port('strange')], '', ['physnet net is on NUMA node 5, which has no CPUs']],
    ['no uplink', [], '', ['physnet net: bridge br-net has no uplink']],
    ['DPDK with a PCI address', [dpdk('d0', '0000:af:00.0')], '1', []],
    ['DPDK with a short address and options', [dpdk('d0', 'AF:00.0,dv_flow_en=1')], '1', []],
    [
      'DPDK with the NUMA node that DPDK reports',
      [dpdk('d0', 'class=eth,mac=00:11:22:33:44:55', { numaId: 1 })],
      '1',
      [],
    ],
    ['the kernel takes precedence over DPDK', [dpdk('d0', '0000:18:00.0', { numaId: 1 })], '0', []],
    ['DPDK if the kernel has no NUMA node', [dpdk('d0', '0000:3b:00.0', { numaId: 1 })], '1', []],
    [
      'DPDK without a known NUMA node',
      [dpdk('d0', undefined)],
      '',
      ['physnet net: the kernel does not know the NUMA node of d0'],
    ],
    [
      'a DPDK representor belongs to a guest',
      [dpdk('d0', '0000:af:00.0'), dpdk('r0', '0000:18:00.0,representor=[0]')],
      '1',
      [],
    ],
  ];
  for (const [name, interfaces, cells, doubts] of physnets) {
    it(name, () => {
      const located = locate(config(interfaces));
      assert.equal(located.networks.physnets.get('net')?.toString(), cells);
      assert.deepEqual(
        located.doubts.map(({ text }) => text),
        doubts,
      );
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
  type Bridges = Record<
    string,
    { interfaces?: SwitchInterface[]; patches?: Record<string, string>; internal?: string[] }
  >;
  const NONE_BEHIND = (name: string) => `no NIC is behind ${name}, so the network map must state its NUMA node`;
  const ways: [string, Bridges, () => void, string, string[]][] = [
    [
      'a patch port to a bridge with a NIC',
      { 'br-net': { patches: { p0: 'p1' } }, 'br-phy': { patches: { p1: 'p0' }, interfaces: [port('far')] } },
      () => undefined,
      '1',
      [],
    ],
    [
      'a chain of patch ports, with a way back',
      {
        'br-net': { patches: { a0: 'a1' } },
        middle: { patches: { a1: 'a0', b0: 'b1' } },
        last: { patches: { b1: 'b0' }, interfaces: [dpdk('d0', '0000:af:00.0')] },
      },
      () => undefined,
      '1',
      [],
    ],
    [
      'two patch ports to bridges on different NUMA nodes',
      {
        'br-net': { patches: { a0: 'a1', b0: 'b1' } },
        one: { patches: { a1: 'a0' }, interfaces: [port('near')] },
        two: { patches: { b1: 'b0' }, interfaces: [port('far')] },
      },
      () => undefined,
      '0-1',
      [],
    ],
    [
      'a NIC of the bridge counts before one behind a patch port',
      {
        'br-net': { patches: { p0: 'p1' }, interfaces: [port('near')] },
        'br-phy': { patches: { p1: 'p0' }, interfaces: [port('far')] },
      },
      () => undefined,
      '0',
      [],
    ],
    [
      'the integration bridge leads to the networks of all bridges',
      {
        'br-net': { patches: { p0: 'p1' } },
        'br-int': { patches: { p1: 'p0', q0: 'q1' } },
        other: { patches: { q1: 'q0' }, interfaces: [port('far')] },
      },
      () => undefined,
      '',
      ['physnet net: bridge br-net has no uplink'],
    ],
    [
      'a patch port without a peer',
      { 'br-net': { patches: { p0: 'gone' } } },
      () => undefined,
      '',
      ['physnet net: bridge br-net has no uplink'],
    ],
    [
      'a veth pair to a Linux bridge over a NIC',
      { 'br-net': { interfaces: [port('lan0'), port('veth0')] } },
      () => {
        pair();
        linuxBridge('lan', ['lan1', 'far']);
      },
      '1',
      [],
    ],
    [
      'a veth pair to another bridge of the switch',
      { 'br-net': { interfaces: [port('lan0')] }, 'br-phy': { interfaces: [port('lan1'), port('far')] } },
      pair,
      '1',
      [],
    ],
    [
      'a veth pair whose other end only has an address',
      { 'br-net': { interfaces: [port('lan0')] } },
      pair,
      '',
      ['physnet net: bridge br-net has no uplink'],
    ],
    [
      'a veth whose other end is in another network namespace, where its index is that of a NIC here',
      { 'br-net': { interfaces: [port('veth0')] } },
      () => tree.files('far', { ifindex: '77\n', iflink: '77\n' }),
      '',
      ['physnet net: bridge br-net has no uplink'],
    ],
    [
      'an internal port in a Linux bridge over a bond',
      { 'br-net': { internal: ['br-net'] } },
      () => {
        tree.stacked('br-net', []);
        tree.stacked('bond0', ['near', 'far'], { slaves: true });
        linuxBridge('lan', ['br-net', 'bond0']);
      },
      '0-1',
      [],
    ],
    [
      'an internal port in a VRF: routes decide',
      { 'br-net': { internal: ['br-net'] } },
      () => {
        tree.stacked('br-net', []);
        tree.stacked('vrf0', ['br-net', 'far']);
        symlinkSync('../vrf0', join(tree.root, 'class/net/br-net/master'));
      },
      '',
      ['physnet net: bridge br-net has no uplink'],
    ],
    ...['a team', 'a VLAN', 'a macvlan', 'a Linux bridge'].map(
      (what): [string, Bridges, () => void, string, string[]] => [
        `${what} over a NIC as the port`,
        { 'br-net': { interfaces: [port('upper0')] } },
        () => void tree.stacked('upper0', ['far']),
        '1',
        [],
      ],
    ),
    [
      'a Linux bridge without a NIC as the port',
      { 'br-net': { interfaces: [port('lan')] } },
      () => linuxBridge('lan', ['dummy0']),
      '',
      [`physnet net: ${NONE_BEHIND('lan')}`],
    ],
  ];
  for (const [name, described, prepare, cells, doubts] of ways) {
    it(`a way to a NIC: ${name}`, () => {
      prepare();
      const bridges = Object.entries(described).map(([bridge, { interfaces = [], patches = {}, internal = [] }]) => {
        return [
          bridge,
          { interfaces, patches: new Map(Object.entries(patches)), internal: new Set(internal) },
        ] as const;
      });
      const located = locate(config([], { bridges: new Map(bridges) }));
      assert.equal(located.networks.physnets.get('net')?.toString(), cells);
      assert.deepEqual(
        located.doubts.map(({ text }) => text),
        doubts,
      );
    });
  }

  it('a tunnel’s address on a VLAN over a bridge’s internal interface is at the uplinks of the bridge', () => {
    tree.stacked('br-net', []);
    tree.stacked('br-net.7', ['br-net']);
    addresses.set('10.0.3.1', 'br-net.7');
    assert.equal(locate(config([port('far')], { encapIps: ['10.0.3.1'] })).networks.tunnel?.toString(), '1');
  });

  for (const [what, name, interfaces] of [
    ['a dummy', 'dummy0', [port('far')]],
    ['a bridge without an uplink', 'br-net', []],
  ] as const) {
    it(`a tunnel’s address on ${what} is reported`, () => {
      addresses.set('10.0.4.1', name);
      const { networks, doubts } = locate(config(interfaces, { mappings: new Map(), encapIps: ['10.0.4.1'] }));
      assert.equal(networks.tunnel?.toString(), '');
      assert.deepEqual(
        doubts.map(({ text }) => text),
        [`the tunnel: ${NONE_BEHIND(name)}`],
      );
    });
  }

  it('tunnel endpoints of several OVN instances on different NUMA nodes are reported', () => {
    const encapIps = ['10.0.0.1', '10.0.1.1'];
    const doubts = (hasSeveralEndpoints: boolean) =>
      locate(config([port('far')], { encapIps, hasSeveralEndpoints })).doubts.map(({ text }) => text);
    assert.deepEqual(doubts(false), []);
    assert.deepEqual(doubts(true), [
      'the tunnel: OVN instances have endpoints on different NUMA nodes (0-1); all of them count',
    ]);
  });

  it('physnets that OVN instances map to different bridges are at the uplinks of both', () => {
    const bridge = (name: string) => ({ internal: new Set<string>(), patches: new Map(), interfaces: [port(name)] });
    const bridges = new Map([
      ['a', bridge('near')],
      ['b', bridge('far')],
    ]);
    const { networks, doubts } = locate(config([], { bridges, mappings: new Map([['net', ['a', 'b', 'gone']]]) }));
    assert.equal(networks.physnets.get('net')?.toString(), '0-1');
    assert.deepEqual(
      doubts.map(({ text }) => text),
      ['physnet net: there is no bridge gone'],
    );
  });

  const tunnels: [string, string[], string | undefined, RegExp | undefined][] = [
    ['none', [], undefined, undefined],
    ['on a NIC', ['10.0.1.1'], '1', undefined],
    ['several addresses', ['10.0.0.1', '10.0.1.1'], '0-1', undefined],
    ['on a bridge’s own interface: at the uplinks of the bridge', ['10.0.2.1'], '1', undefined],
    ['an address without an interface', ['10.9.9.9'], '', /no interface has the address 10.9.9.9/],
  ];
  for (const [name, encapIps, cells, doubt] of tunnels) {
    it(`the tunnel: ${name}`, () => {
      const { networks, doubts } = locate(config([port('far')], { encapIps }));
      assert.equal(networks.tunnel?.toString(), cells);
      if (doubt !== undefined) assert.match(doubts[0]?.text ?? '', doubt);
    });
  }

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

  it('reports a mapping to a missing bridge', () => {
    const { networks, doubts } = locate(config([], { mappings: new Map([['ghost', ['br-x']]]) }));
    assert.equal(networks.physnets.has('ghost'), false);
    assert.match(doubts[0]?.text ?? '', /physnet ghost: there is no bridge br-x/);
  });
});

describe('limits for the input of a switch', () => {
  const temp = tempDirectories();

  it('looks up each port once, even if many physnets share a bridge with many ports', () => {
    const root = temp();
    const interfaces = Array.from({ length: 256 }, (_, i) => port(`p${i}`));
    const many = config(interfaces, {
      mappings: new Map(Array.from({ length: 256 }, (_, i) => [`n${i}`, ['br-net']])),
    });
    const alone = config(interfaces);
    const parts = { sysfsRoot: root, cells: set('0-1'), interfaceOf: () => undefined };
    const cost = (one: SwitchConfig) => processorTime(() => locateNetworks(one, parts));
    cost(alone);
    const [single, all] = [cost(alone), cost(many)];
    assert.ok(all < 20 * single + 200, `${all} ms for 256 physnets, ${single} ms for one`);
  });

  it('does not repeat a long device name in a doubt', () => {
    const interfaces = Array.from({ length: 100 }, (_, i) => dpdk(`${i}${'x'.repeat(1000)}`, undefined));
    const { doubts } = locateNetworks(config(interfaces), {
      sysfsRoot: temp(),
      cells: set('0-1'),
      interfaceOf: () => undefined,
    });
    assert.ok(doubts.length === 1 && (doubts[0]?.text.length ?? 0) < 800 && doubts[0]?.text.includes('and 92 more'));
  });

  for (const [what, spoil] of [
    ['a pipe', (file: string) => execFileSync('mkfifo', [file])],
    ['a huge file', (file: string) => writeFileSync(file, '#'.repeat(1024 * 1024))],
    ['an overlong name', (file: string) => writeFileSync(file, `{physnets: {${'x'.repeat(5000)}: {numaNodes: [-1]}}}`)],
    ['an overlong alias', (file: string) => writeFileSync(file, `a: *${'x'.repeat(5000)}`)],
  ] as const) {
    it(`gives a short error without blocking for a network map that is ${what}`, () => {
      const file = `${temp()}/map.yaml`;
      spoil(file);
      assert.throws(
        () => readNetworkMap(file),
        (error) => error instanceof NetworkMapError && error.message.length < 700,
      );
    });
  }
});

describe('found networks and mapped networks', () => {
  const temp = tempDirectories();
  const discovered: DiscoveredNetworks = {
    networks: {
      physnets: new Map([
        ['a', set('0')],
        ['b', set('1')],
        ['c', CpuSet.EMPTY],
      ]),
      tunnel: set('1'),
    },
    down: new Set(['b']),
    polled: new Set(['b']),
    doubts: [{ network: 'c', text: 'physnet c: unknown' }],
    carriers: new Map(),
    lacksAddress: false,
  };
  type Changes = Partial<Omit<NetworkSources, 'map'> & Omit<MapSources, 'cells'> & { readonly last: LastMap }>;
  const combine = (changes: Changes) => {
    const { map, labels, last, ...more } = { map: undefined, labels: {}, last: undefined, ...changes };
    return combineNetworks({
      host,
      map: createMapMemory({ load: () => last, save() {} }, recordingLogger().log)({ map, labels, cells: set('0-1') }),
      discovered,
      pmdCpus: CpuSet.EMPTY,
      switchFaults: [],
      switchProblem: undefined,
      ...more,
    });
  };
  const map = (text: string) => parseNetworkMapText('map.yaml', text);
  const physnets = (view: ReturnType<typeof combine>) =>
    [...view.networks.physnets].map(([name, cells]) => `${name}=${cells}`).join(' ');

  it('without a map, all found networks and doubts are reported', () => {
    const view = combine({});
    assert.equal(physnets(view), 'a=0 b=1 c=');
    assert.deepEqual(view.problems, [{ reason: 'NotFound', message: 'physnet c: unknown' }]);
    assert.deepEqual([...view.down], ['b']);
  });

  it('the map wins, drift is shown, and doubts about mapped networks are dropped', () => {
    const view = combine({ map: map('physnets: {a: {numaNodes: [1]}, c: {numaNodes: [0]}, d: {numaNodes: []}}') });
    assert.equal(physnets(view), 'a=1 b=1 c=0 d=');
    assert.deepEqual(view.problems, []);
    assert.deepEqual(view.drift, [
      'physnet a: the map says NUMA node 1, it was found on NUMA node 0',
      'physnet c: the map says NUMA node 0, it was found on no NUMA node in particular',
      'physnet d: the map says no NUMA node in particular, it was not found here',
    ]);
  });

  const unfit: [string, Changes, string][] = [
    ['an unreadable map', { map: new Error('map.yaml: not YAML') }, 'InvalidMap'],
    ['a NUMA node that the host does not have', { map: map('tunnel: {numaNodes: [7]}') }, 'InvalidMap'],
    ['selectors while the node’s labels are unknown', { map: map('[]'), labels: undefined }, 'NodeUnknown'],
  ];
  for (const [name, change, reason] of unfit) {
    it(`a bad map without an earlier good one makes the node unfit: ${name}`, () => {
      const view = combine(change);
      assert.deepEqual([physnets(view), view.networks.tunnel], ['', undefined]);
      assert.equal(view.problems[0]?.reason, reason);
    });

    it(`a bad map keeps the last good one in use: ${name}`, () => {
      const last = { networks: { physnets: new Map([['a', set('1')]]), tunnel: undefined } };
      const view = combine({ ...change, last });
      assert.deepEqual([physnets(view), view.networks.tunnel?.toString()], ['a=1 b=1 c=', '1']);
      const text = view.mapFault ?? view.problems[0]?.message ?? '';
      assert.match(text, /; the last good map stays in use$/);
      if (reason === 'InvalidMap')
        assert.match(text, /map.yaml: not YAML|NUMA node 7 of the tunnel is not on this host/);
    });
  }

  it('the last good map, even one that selects nothing for this node, survives a restart; an invalid file counts as missing', () => {
    const path = `${temp()}/state/network-map.json`;
    const file = createLastMapFile(path, () => undefined);
    assert.equal(file.load(set('0-1')), undefined);
    file.save({
      networks: {
        physnets: new Map([
          ['a', set('1')],
          ['b', CpuSet.EMPTY],
        ]),
        tunnel: set('0-1'),
      },
    });
    const loaded = createLastMapFile(path, () => undefined).load(set('0-1'));
    assert.deepEqual([...(loaded?.networks?.physnets ?? [])].map(String), ['a,1', 'b,']);
    assert.equal(loaded?.networks?.tunnel?.toString(), '0-1');
    assert.equal(file.load(set('0')), undefined, 'of a host with other NUMA nodes');
    file.save({ networks: undefined });
    assert.deepEqual(file.load(set('0')), { networks: undefined });
    for (const text of ['', '[]', '{"networks":{"physnets":{"a":"x"}}}', '{'.repeat(100_000)]) {
      writeFileSync(path, text);
      assert.equal(file.load(set('0-1')), undefined, text.slice(0, 40));
    }
  });

  it('networks of a switch that goes down are kept and reported; a switch that never ran matters only without a map', () => {
    const away = combine({ switchProblem: 'db.sock: gone' });
    assert.equal(physnets(away), 'a=0 b=1 c=');
    assert.match(away.problems[0]?.message ?? '', /db.sock: gone; keeping what was last known/);
    const never = { discovered: undefined, switchProblem: 'db.sock: none' };
    assert.equal(combine(never).problems[0]?.reason, 'SwitchUnreachable');
    assert.deepEqual(combine({ ...never, map: map('physnets: {a: {numaNodes: [0]}}') }).problems, []);
  });

  it('only the first physnets fit in a report, and the number of others is reported', () => {
    const many = new Map(Array.from({ length: 300 }, (_, i) => [`net${i}`, set('0')]));
    const view = combine({
      discovered: { ...discovered, networks: { physnets: many, tunnel: undefined }, doubts: [] },
    });
    assert.equal(view.networks.physnets.size, 256);
    assert.deepEqual(view.problems, [
      {
        reason: 'TooMany',
        message: '44 physnets exceed the 256 of a report; ignored: net256, net257, net258, and 41 more',
      },
    ]);
  });

  it('thousands of long doubts, faults and drifts are reported in few short texts', () => {
    const long = (i: number) => `${i}${'x'.repeat(5000)}`;
    const range = Array.from({ length: 2000 }, (_, i) => i);
    const physnets = new Map(range.map((i) => [long(i), set('0')]));
    const doubts = range.map((i) => ({ network: long(i), text: long(i) }));
    const networks = { physnets, tunnel: undefined };
    const override = range.slice(0, 100).map((i) => ({ physnets: { [`p${i}`]: { numaNodes: [0] } } }));
    const view = combine({
      discovered: { ...discovered, networks, doubts },
      map: override,
      switchFaults: range.map(long),
    });
    const { problems, drift, unpolled } = view;
    const size = JSON.stringify({ problems, drift, unpolled }).length;
    assert.ok(problems.length > 1 && drift.length > 1 && size < 60_000, `${size} characters`);
    assert.match(problems.at(-1)?.message ?? '', /^and \d+ more$/);
  });

  it('a name that no resource can have is left out and reported', () => {
    const networks = { physnets: new Map([['é'.repeat(40), set('0')]]), tunnel: undefined };
    const view = combine({ discovered: { ...discovered, networks, doubts: [] } });
    assert.deepEqual([physnets(view), view.problems[0]?.reason], ['', 'InvalidName']);
  });

  it('a polled physnet without a polling CPU on its NUMA node is reported', () => {
    assert.deepEqual(combine({ pmdCpus: set('0-1') }).unpolled, [
      'physnet b is on NUMA node 1, where no CPU of pmd-cpu-mask (0-1) is',
    ]);
    assert.deepEqual(combine({ pmdCpus: set('1,4') }).unpolled, []);
  });
});

/** The database of a switch whose bridge br-net has the port `near`. */
function startDatabase(path: string) {
  const sockets = new Set<Socket>();
  let requests: number | undefined;
  let sent: object | undefined;
  const row = (id: string, columns: object) => ({ [id]: { insert: columns } });
  const server = createServer((socket) => {
    sockets.add(socket);
    const read = createJsonStream();
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      for (const { method, id } of read(chunk) as { method: string; id: number }[]) {
        if (method === 'monitor_cond') requests = id;
      }
    });
  });
  server.listen(path);
  return {
    monitored: () => requests !== undefined,
    /** Answers with the external_ids: the whole database first, then the change. */
    send(externalIds: Record<string, string>) {
      const root = { external_ids: ['map', Object.entries(externalIds)], other_config: ['map', []] };
      const rest = {
        Bridge: row('b', { name: 'br-net', ports: ['uuid', 'p'], datapath_type: '' }),
        Port: row('p', { name: 'near', interfaces: ['uuid', 'i'] }),
        Interface: row('i', { name: 'near', type: '', options: ['map', []], status: ['map', []], link_state: 'up' }),
      };
      const updates = { Open_vSwitch: row('o', root), ...(sent === undefined && rest) };
      const message =
        sent === undefined
          ? { id: requests, result: updates, error: null }
          : { id: null, method: 'update2', params: ['plumbline', updates] };
      sent = updates;
      for (const socket of sockets) socket.write(JSON.stringify(message));
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('the duty that follows networks', () => {
  const temp = tempDirectories();

  /** Without Open vSwitch; its last good map is kept below the root. */
  const networksOf = (root: string, more: Partial<NetworksDeps> = {}) =>
    createNetworks({
      sysfsRoot: root,
      host: async () => host,
      ovsRundir: undefined,
      networkMap: undefined,
      lastMap: createLastMapFile(`${root}/state/network-map.json`, () => undefined),
      labels: async () => ({}),
      log: recordingLogger().log,
      ...more,
    });

  it('follows the map and the node labels without a switch; a typo keeps the last good map, even after a restart', async () => {
    const root = temp();
    const file = `${root}/map.yaml`;
    writeTree(root, { 'map.yaml': '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [1]}}' });
    const { log } = recordingLogger();
    let reached = false;
    const labels = async () => {
      if (!reached) throw new Error('no API server yet');
      return { rack: 'a' };
    };
    const follow = () => {
      const stop = new AbortController();
      const networks = networksOf(root, { networkMap: file, labels, log });
      const changes: (string | undefined)[] = [];
      networks.subscribe(() => changes.push(networks.view().networks.tunnel?.toString()));
      const done = networks.run(stop.signal);
      const end = async () => {
        stop.abort();
        await done;
      };
      return { networks, changes, end };
    };
    const { networks, changes, end } = follow();
    await eventually(() => networks.view().problems[0]?.reason === 'NodeUnknown', 'it waits for labels');
    reached = true;
    await eventually(() => networks.view().networks.tunnel?.toString() === '1', 'the labels came');
    replaceFile(file, 'tunnel: {numaNodes: [0]}');
    await eventually(() => networks.view().networks.tunnel?.toString() === '0', 'the new map');
    replaceFile(file, 'tunnel: {numaNodes: [7]}');
    await eventually(() => networks.view().mapFault !== undefined, 'a bad map');
    assert.match(networks.view().mapFault ?? '', /NUMA node 7 of the tunnel is not on this host, which has 0-1/);
    assert.deepEqual(changes, [undefined, '1', '0', '0']);
    await end();

    const restarted = follow();
    await eventually(() => restarted.networks.isComplete, 'the agent is restarted with the bad map');
    assert.equal(restarted.networks.view().networks.tunnel?.toString(), '0');
    assert.match(restarted.networks.view().mapFault ?? '', /the last good map stays in use/);
    replaceFile(file, 'tunnel: {numaNodes: [1]}');
    await eventually(() => restarted.networks.view().networks.tunnel?.toString() === '1', 'the map is repaired');
    assert.equal(restarted.networks.view().mapFault, undefined);
    await restarted.end();
  });

  it('reports a map that cannot be parsed and applies a repaired one without waiting for the periodic check', async () => {
    const root = temp();
    const file = `${root}/map.yaml`;
    writeTree(root, { 'map.yaml': 'tunnel: [' });
    const { setTimeout: timeout } = globalThis;
    // The periodic check is at least a second away: it never comes.
    const short = (work: () => void, milliseconds = 0) => timeout(milliseconds < 1000 ? work : () => {}, milliseconds);
    globalThis.setTimeout = short as typeof timeout;
    const stop = new AbortController();
    const networks = networksOf(root, { networkMap: file });
    const done = networks.run(stop.signal);
    try {
      await eventually(() => networks.isComplete, 'looked at');
      assert.match(networks.view().mapFault ?? '', /not YAML/);
      replaceFile(file, 'tunnel: {numaNodes: [1]}');
      await eventually(() => networks.view().networks.tunnel?.toString() === '1', 'the repaired map');
      assert.equal(networks.view().mapFault, undefined);
    } finally {
      globalThis.setTimeout = timeout;
      stop.abort();
      await done;
    }
  });

  it('reports a map whose directory does not exist, and applies it when the directory appears', async () => {
    const root = temp();
    const stop = new AbortController();
    const networks = networksOf(root, { networkMap: `${root}/later/map.yaml` });
    const done = networks.run(stop.signal);
    try {
      await eventually(() => networks.isComplete, 'looked at');
      assert.deepEqual(
        networks.view().problems.map(({ reason }) => reason),
        ['InvalidMap'],
      );
      assert.match(networks.view().problems[0]?.message ?? '', /later\/map\.yaml/);
      writeTree(root, { 'later/map.yaml': 'tunnel: {numaNodes: [1]}' });
      await eventually(() => networks.view().networks.tunnel?.toString() === '1', 'the map');
      assert.deepEqual(networks.view().problems, []);
    } finally {
      stop.abort();
      await done;
    }
  });

  it('follows the switch’s database with the host’s own addresses, and keeps the networks while it is down', async () => {
    const tree = createSysfsTree(temp());
    tree.pci('0000:18:00.0', 0);
    tree.pci('0000:af:00.0', 1);
    tree.nic('near', '0000:18:00.0');
    tree.nic('far', '0000:af:00.0');
    const list = mock.method(os, 'networkInterfaces', () => ({
      near: [{ address: '192.0.2.1' }, { address: '2001:db8::1' }],
      'far:1': [{ address: '192.0.2.2' }],
      gone: undefined,
    }));
    syncBuiltinESMExports();
    const rundir = temp();
    const listen = () => startDatabase(join(rundir, 'db.sock'));
    let database = listen();
    const { log, lines } = recordingLogger();
    const stop = new AbortController();
    const networks = networksOf(tree.root, { ovsRundir: rundir, log });
    let changes = 0;
    const leave = networks.subscribe(() => changes++);
    const done = networks.run(stop.signal);
    const messages = () => lines.map(({ level, msg }) => `${level} ${msg}`);
    try {
      await eventually(() => database.monitored(), 'it asks');
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.deepEqual([networks.isComplete, changes], [false, 0], 'the switch has not answered');
      database.send({ 'ovn-bridge-mappings': 'net:br-net', 'ovn-encap-ip': '192.0.2.2' });
      await eventually(() => networks.isComplete, 'the first answer');
      const displayed = () => `${networks.view().networks.physnets.get('net')} ${networks.view().networks.tunnel}`;
      assert.equal(displayed(), '0 1');
      assert.deepEqual(messages(), ['30 network map updated']);
      const { physnets, tunnel, down, pmdCpuMask } = lines[0] ?? {};
      assert.deepEqual(JSON.parse(JSON.stringify({ physnets, tunnel, down, pmdCpuMask })), {
        physnets: { net: '0' },
        tunnel: '1',
        down: [],
        pmdCpuMask: '',
      });
      assert.equal(changes, 1);
      leave();
      database.send({ 'ovn-bridge-mappings': 'net:br-net', 'ovn-encap-ip': '2001:db8::1,192.0.2.2' });
      await eventually(() => displayed() === '0 0-1', 'a change');
      const listed = list.mock.callCount();
      database.send({ 'ovn-bridge-mappings': 'net:br-net' });
      await eventually(() => displayed() === '0 undefined', 'no tunnel');
      assert.equal(list.mock.callCount(), listed, 'addresses are listed for a tunnel only');
      assert.equal(changes, 1, 'no longer called');

      await database.close();
      await eventually(() => networks.view().problems[0]?.reason === 'SwitchUnreachable', 'it is missed');
      assert.equal(displayed(), '0 undefined');
      assert.equal(lines.filter(({ msg }) => msg === 'querying Open vSwitch failed; retrying').length > 0, true);
      database = listen();
      await eventually(() => database.monitored(), 'it asks again');
      database.send({ 'ovn-bridge-mappings': 'net:br-net,other:br-none' });
      await eventually(() => networks.view().problems[0]?.message.includes('br-none') === true, 'another fault');
      assert.equal(networks.view().problems.length, 1);
      const last = lines.at(-1);
      assert.deepEqual([last?.level, last?.msg], [40, 'network map updated with problems']);
      assert.deepEqual(last?.['reasons'], ['physnet other: there is no bridge br-none']);
    } finally {
      stop.abort();
      await done;
      await database.close();
      list.mock.restore();
      syncBuiltinESMExports();
    }
  });
});
