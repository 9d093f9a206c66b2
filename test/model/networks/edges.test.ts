import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { ParseError } from '../../../model/errors.ts';
import { parseAttachments, parseRef } from '../../../model/networks/attachments.ts';
import { mainPlugin } from '../../../model/networks/cni-config.ts';
import { EMPTY_CONTEXT, parseBridgeMappings, parseConfiguredContext } from '../../../model/networks/context.ts';
import { parseAffinities } from '../../../model/networks/interfaces.ts';
import { classifyNad, isPrimaryNetwork, nadFacts } from '../../../model/networks/nad.ts';
import { overlayNetworkMap } from '../../../model/networks/network-map.ts';
import { outOfReach, reachFinding } from '../../../model/networks/reach.ts';
import { type ResolvedNetwork, resolveNetworks } from '../../../model/networks/resolve.ts';
import {
  EVERY_NETWORK,
  interfaceResources,
  preferredResources,
  requiredResources,
} from '../../../model/networks/resources.ts';

const set = (text: string) => CpuSet.parse(text);
const EAST = 'physnet.plumbline.dev/east';

function network(more: Partial<Extract<ResolvedNetwork, { kind: 'physnet' }>> = {}): ResolvedNetwork {
  return {
    kind: 'physnet',
    physnet: 'east',
    name: 'net1',
    role: 'secondary',
    network: 'ns/east',
    affinity: 'required',
    ...more,
  };
}
const TUNNEL = { ...network(), kind: 'tunnel', name: 'net2', network: 'ns/over' } as unknown as ResolvedNetwork;
const BRIDGE = { ...network(), kind: 'none', name: 'net3', network: 'ns/bridge' } as unknown as ResolvedNetwork;

describe('whether a node can place a guest near its networks', () => {
  const rooms = new Map([
    [0, 4],
    [1, 6],
    [2, 5],
  ]);
  const node = { rooms, alignment: 'best-effort' };
  const located = (...cells: string[]) => cells.map((one, i) => ({ text: `net${i}`, cells: set(one) }));
  const guest = (cpus: number, spansCells = false) => ({ cpus, spansCells });

  it('it can without networks, or without CPUs of its own', () => {
    assert.equal(outOfReach(guest(100), [], node), undefined);
    assert.equal(outOfReach(guest(0), located('0', '1'), node), undefined);
  });

  it('a guest with one NUMA node needs all CPUs on the NUMA nodes that its networks share', () => {
    assert.equal(outOfReach(guest(4), located('0', '0-1'), node), undefined);
    assert.deepEqual(outOfReach(guest(5), located('0', '0-1'), node), {
      reason: 'larger-than-cells',
      text: 'net0 is on NUMA node 0, net1 is on NUMA nodes 0-1, where pods can have 4 CPUs at most, and it requests 5',
      excess: 1,
    });
    assert.equal(outOfReach(guest(10), located('0-1'), node), undefined);
    assert.equal(outOfReach(guest(11), located('0-1'), node)?.excess, 1);
    assert.deepEqual(outOfReach(guest(1), located('0', '1'), node), {
      reason: 'cannot-split',
      text: 'the kubelet cannot split the CPUs: net0 is on NUMA node 0, net1 is on NUMA node 1, and they have no common NUMA node',
    });
  });

  it('a guest that spans NUMA nodes needs some CPUs near each network', () => {
    assert.equal(outOfReach(guest(100, true), located('0', '0-1'), node), undefined);
    const where = 'net0 is on NUMA node 0, net1 is on NUMA node 1';
    for (const alignment of ['restricted', 'single-numa-node']) {
      assert.deepEqual(outOfReach(guest(14, true), located('0', '1'), { rooms, alignment }), {
        reason: 'cannot-split',
        text: `the kubelet cannot split the CPUs: ${where}; topologyManagerPolicy ${alignment} refuses a pod with devices on different NUMA nodes`,
      });
    }
    // Outside node 0 there is room for 11, outside node 1 for 9.
    assert.equal(outOfReach(guest(12, true), located('0', '1'), node), undefined);
    assert.deepEqual(outOfReach(guest(11, true), located('0', '1'), node), {
      reason: 'may-not-span',
      text: `the kubelet may put all 11 CPUs away from net0: ${where}; the guest needs more than 11 CPUs to be near all of them for certain`,
    });
    assert.match(outOfReach(guest(11, true), located('1', '0'), node)?.text ?? '', /away from net1: /);
    const even = { ...node, rooms: new Map([0, 1, 2].map((cell) => [cell, 4])) };
    assert.match(outOfReach(guest(8, true), located('0', '1'), even)?.text ?? '', /away from net0: /);
  });
});

describe('the message if no node can', () => {
  const node = (room: number, east: string | undefined, tunnel?: string, alignment = 'best-effort') => ({
    rooms: new Map([
      [0, room],
      [1, room],
    ]),
    alignment,
    networks: {
      physnets: new Map(east === undefined ? [] : [['east', set(east)]]),
      tunnel: tunnel === undefined ? undefined : set(tunnel),
    },
  });
  const guest = { cpus: 6, spansCells: false };
  const LARGER = 'larger than the NUMA nodes of its networks on every node that it can go to: ';
  const text = (room: number) =>
    `${LARGER}interface net1 (physnet east) is on NUMA node 0, where pods can have ${room} CPUs at most, and it requests 6`;

  it('is absent without located required networks, without nodes, or if one node can', () => {
    assert.equal(reachFinding([], guest, [node(1, '0')]), undefined);
    assert.equal(reachFinding([BRIDGE], guest, [node(1, '0')]), undefined);
    assert.equal(reachFinding([network({ affinity: 'preferred' })], guest, [node(1, '0')]), undefined);
    assert.equal(reachFinding([network()], guest, []), undefined);
    assert.equal(reachFinding([network()], guest, [node(1, '0'), node(6, '0')]), undefined);
    assert.equal(reachFinding([network()], guest, [node(1, '')]), undefined);
  });

  it('is about the node that misses the least', () => {
    assert.deepEqual(reachFinding([network()], guest, [node(2, '0'), node(5, '0'), node(3, '0')]), {
      message: text(5),
      isTooLarge: true,
    });
    assert.deepEqual(reachFinding([network(), TUNNEL], guest, [node(9, '0', '1'), node(5, '0', '0')]), {
      message: `${LARGER}interface net1 (physnet east) is on NUMA node 0, interface net2 (the tunnel) is on NUMA node 0, where pods can have 5 CPUs at most, and it requests 6`,
      isTooLarge: false,
    });
    const spans = { cpus: 6, spansCells: true };
    const may = reachFinding([network(), TUNNEL], spans, [node(9, '0', '1', 'restricted'), node(9, '0', '1')]);
    assert.match(may?.message ?? '', /^the kubelet may not span the NUMA nodes of its networks on any node /);
    const may2 = reachFinding([network(), TUNNEL], spans, [node(9, '0', '1'), node(9, '0', '1', 'restricted')]);
    assert.deepEqual([may2?.message, may2?.isTooLarge], [may?.message, false]);
    assert.deepEqual(reachFinding([network(), TUNNEL], guest, [node(9, '0', '1')]), {
      message:
        'the required networks have no common NUMA node on any node that it can go to: net1 (physnet east), net2 (the tunnel)',
      isTooLarge: false,
    });
  });

  it('says that no node has all networks', () => {
    const expected = {
      message: 'no node that it can go to has all its required networks: net1 (physnet east)',
      isTooLarge: false,
    };
    assert.deepEqual(reachFinding([network(), BRIDGE], guest, [node(9, undefined)]), expected);
    // A node without the network is ignored if another one is too small.
    assert.deepEqual(reachFinding([network()], guest, [node(9, undefined), node(5, '0')]), {
      message: text(5),
      isTooLarge: true,
    });
    const long = reachFinding([network({ name: 'n'.repeat(300) })], guest, [node(9, undefined)]);
    assert.match(long?.message ?? '', /: n{199}…$/);
    assert.match(
      reachFinding([network({ name: 'n'.repeat(300) })], guest, [node(5, '0')])?.message ?? '',
      /interface n{200} \(physnet east\)/,
    );
  });
});

describe('the resources of networks', () => {
  const some = [
    network(),
    network({ name: 'net4' }),
    TUNNEL,
    BRIDGE,
    network({ physnet: 'west', affinity: 'preferred' }),
  ];

  it('are one for each required network that some node reports', () => {
    assert.deepEqual(requiredResources(some, EVERY_NETWORK, true), {
      resources: [EAST, 'plumbline.dev/tunnel'],
      requiredNetworks: some.slice(0, 3),
      findings: [],
    });
    assert.deepEqual(requiredResources(some, EVERY_NETWORK, false), {
      resources: [],
      requiredNetworks: [],
      findings: [],
    });
    const none = requiredResources([TUNNEL, network({ explicit: true })], { physnets: new Set(), tunnel: false }, true);
    assert.deepEqual(none.resources, [EAST]);
    assert.deepEqual(
      none.findings.map(({ code, message }) => [code, message]),
      [
        ['unknown-tunnel', 'interface net2: no node reports a tunnel endpoint of ns/over; it gets no NUMA affinity'],
        [
          'unknown-physnet',
          'interface net1: no node reports the physnet east of ns/east; it waits until one does, as the annotation plumbline.dev/numa-affinity requires',
        ],
      ],
    );
  });

  it('include preferred ones, and those that matter to their pod', () => {
    assert.deepEqual(preferredResources(some), ['physnet.plumbline.dev/west']);
    assert.deepEqual(preferredResources([{ ...BRIDGE, affinity: 'preferred' } as ResolvedNetwork]), []);
    assert.deepEqual(interfaceResources([...some, network({ name: 'no', affinity: 'none' })]), [
      [EAST, 'net1'],
      [EAST, 'net4'],
      ['plumbline.dev/tunnel', 'net2'],
      ['physnet.plumbline.dev/west', 'net1'],
    ]);
  });

  it('are missing for a physnet with too long a name', () => {
    const long = network({ physnet: 'ü'.repeat(16) });
    const { resources, findings } = requiredResources([long], EVERY_NETWORK, true);
    assert.deepEqual([resources, findings.map(({ code }) => code)], [[], ['physnet-name-too-long']]);
    assert.deepEqual(preferredResources([network({ physnet: 'ü'.repeat(16), affinity: 'preferred' })]), []);
    assert.deepEqual(interfaceResources([long]), []);
  });
});

describe('network definitions at their limits', () => {
  const nad = (config: unknown, annotations?: Record<string, string>) => ({
    metadata: annotations ? { annotations } : {},
    spec: { config: typeof config === 'string' ? config : JSON.stringify(config) },
  });
  const OVN = { type: 'ovn-k8s-cni-overlay', name: 'n' };
  const context = {
    ...EMPTY_CONTEXT,
    bridgePhysnets: new Map([['br-a', 'a']]),
    kubeOvnSubnets: [
      { provider: 'p', vlan: 'v1' },
      { provider: 'p', vlan: 'v2' },
      { provider: 'q', vlan: 'gone' },
      { provider: 'r' },
    ],
    kubeOvnVlans: [
      { name: 'v1', provider: 'first' },
      { name: 'v1', provider: 'second' },
      { name: 'v2', provider: 'other' },
    ],
  } as unknown as typeof EMPTY_CONTEXT;
  const RESOURCE = { 'k8s.v1.cni.cncf.io/resourceName': 'intel.com/vf' };

  it('of a definition without a configuration are empty', () => {
    assert.deepEqual(nadFacts({ metadata: {} }).main, 'no-config');
    assert.deepEqual(nadFacts({ metadata: {}, spec: null }).main, 'no-config');
  });

  it('are primary only for OVN-Kubernetes with that role', () => {
    assert.equal(isPrimaryNetwork(nadFacts(nad({ ...OVN, role: 'primary' }))), true);
    assert.equal(isPrimaryNetwork(nadFacts(nad({ ...OVN, role: 'secondary' }))), false);
    assert.equal(isPrimaryNetwork(nadFacts(nad({ type: 'ovs', role: 'primary' }))), false);
    assert.equal(isPrimaryNetwork(nadFacts(nad('{'))), false);
  });

  it('have annotations of up to 317 characters', () => {
    const of = (length: number) => nadFacts(nad('', { 'plumbline.dev/physnet': 'p'.repeat(length) })).physnet?.length;
    assert.deepEqual([of(0), of(1), of(317), of(318)], [undefined, 1, 317, undefined]);
  });

  for (const [what, config, annotations, expected] of [
    ['ovs with a bridge', { type: 'ovs', bridge: 'br-a' }, RESOURCE, { kind: 'physnet', physnet: 'a' }],
    ['ovs with another bridge', { type: 'ovs', bridge: 'br-b' }, {}, { kind: 'none', bridge: 'br-b' }],
    ['ovs without a bridge', { type: 'ovs' }, {}, { kind: 'none' }],
    ['ovs with a virtual function', { type: 'ovs' }, RESOURCE, { kind: 'device', resourceName: 'intel.com/vf' }],
    ['a Linux bridge', { type: 'bridge', bridge: 'br-a' }, {}, { kind: 'none', bridge: 'br-a' }],
    ['a missing bridge', { type: 'bridge' }, {}, { kind: 'none' }],
    ['sriov', { type: 'sriov' }, {}, { kind: 'device' }],
    ['localnet by its name', { ...OVN, topology: 'localnet' }, {}, { kind: 'physnet', physnet: 'n' }],
    [
      'layer3 without an overlay',
      { ...OVN, topology: 'layer3', transport: 'no-overlay' },
      {},
      { kind: 'physnet', physnet: 'physnet' },
    ],
    ['kube-ovn, the first of two', { type: 'kube-ovn', provider: 'p' }, {}, { kind: 'physnet', physnet: 'first' }],
    [
      'kube-ovn without a VLAN object',
      { type: 'kube-ovn', provider: 'q' },
      {},
      { kind: 'unknown', warning: 'no-subnet' },
    ],
    ['kube-ovn without a VLAN', { type: 'kube-ovn', provider: 'r' }, {}, { kind: 'tunnel' }],
    ['kube-ovn without a subnet', { type: 'kube-ovn', provider: 's' }, {}, { kind: 'unknown', warning: 'no-subnet' }],
  ] as const) {
    it(what, () => assert.deepEqual(classifyNad(nadFacts(nad(config, annotations)), context), expected));
  }

  it('a list: the first plugin that creates an interface, with the name of the list', () => {
    const main = (conf: object) => mainPlugin(JSON.stringify(conf));
    assert.deepEqual(main({ name: 'l', plugins: [{ type: 'tuning' }, { type: 'ovs' }, { type: 'bridge' }] }), {
      type: 'ovs',
      name: 'l',
    });
    assert.deepEqual(main({ plugins: [{ type: 'ovs', name: 'own' }] }), { type: 'ovs', name: 'own' });
    assert.equal(main({ plugins: [{ type: 'tuning' }, {}] }), 'no-config');
    assert.equal(main({ plugins: [] }), 'no-config');
    assert.equal(mainPlugin(''), 'no-config');
    assert.equal(mainPlugin(' \n'), 'no-config');
    assert.equal(mainPlugin('null'), 'invalid-json');
  });

  it('a list of up to 64 plugins, in a text of up to 256 KiB, with fields of up to 253 characters', () => {
    const list = (count: number) =>
      mainPlugin(JSON.stringify({ plugins: Array.from({ length: count }, () => ({ type: 'ovs' })) }));
    assert.deepEqual(list(64), { type: 'ovs', name: undefined });
    assert.equal(list(65), 'invalid-json');
    const longest = '{"type":"ovs"}'.padEnd(256 * 1024);
    assert.deepEqual(mainPlugin(longest), { type: 'ovs' });
    assert.equal(mainPlugin(`${longest} `), 'invalid-json');
    const bridge = (length: number) => {
      const found = mainPlugin(JSON.stringify({ type: 'ovs', bridge: 'b'.repeat(length) }));
      return typeof found === 'string' ? found : found.bridge?.length;
    };
    assert.deepEqual([bridge(253), bridge(254)], [253, undefined]);
    assert.deepEqual(mainPlugin('{"type":"vlan","master":7,"linkInContainer":"x"}'), {
      type: 'vlan',
      master: undefined,
      linkInContainer: undefined,
    });
  });

  it('a gate: the plugin that it wraps, with the name of the list', () => {
    const main = (conf: object) => mainPlugin(JSON.stringify(conf));
    const gate = { type: 'plumbline-gate', name: 'outer' };
    assert.deepEqual(main({ ...gate, delegate: { type: 'ovs' } }), { type: 'ovs', name: 'outer' });
    assert.deepEqual(main({ ...gate, delegate: { type: 'ovs', name: 'inner' } }), { type: 'ovs', name: 'inner' });
    assert.deepEqual(main({ type: 'macvlan', delegate: { type: 'ovs' } }), { type: 'macvlan' });
    for (const delegate of [undefined, 'ovs', {}]) assert.deepEqual(main({ ...gate, delegate }), gate);
    assert.deepEqual(main({ name: 'l', plugins: [{ ...gate, delegate: { type: 'ovs' } }, { type: 'tuning' }] }), {
      type: 'ovs',
      name: 'l',
    });
  });
});

describe('attachments, affinities and mappings at their limits', () => {
  const fails = (work: () => unknown, message: RegExp) =>
    assert.throws(work, (error: Error) => error instanceof ParseError && message.test(error.message));

  it('attachments of one annotation differ between namespaces', () => {
    const of = (text: string, namespace: string) =>
      parseAttachments(text, namespace).map((one) => `${one.namespace}/${one.name}`);
    assert.deepEqual([of('a', 'x'), of('a', 'y'), of('a', 'x'), of('b', 'x')], [['x/a'], ['y/a'], ['x/a'], ['x/b']]);
    assert.deepEqual([parseAttachments('', 'x'), parseAttachments(' ', 'x')], [[], []]);
    assert.deepEqual(
      [parseRef('a', 'x'), parseRef('/a', 'x'), parseRef('y/a/b', 'x')],
      [
        { namespace: 'x', name: 'a' },
        { namespace: '', name: 'a' },
        { namespace: 'y', name: 'a/b' },
      ],
    );
    assert.deepEqual(parseAttachments('a@', 'x'), [{ namespace: 'x', name: 'a' }]);
    assert.deepEqual(parseAttachments('a@eth5', 'x'), [{ namespace: 'x', name: 'a', interface: 'eth5' }]);
  });

  it('attachments are read up to 128 items, 64 KiB, and names as long as in the API server', () => {
    const json = (count: number) => JSON.stringify(Array.from({ length: count }, () => ({ name: 'a' })));
    for (const text of ['a,'.repeat(127), json(128)]) assert.equal(parseAttachments(text, 'x').length, 128);
    for (const text of ['a,'.repeat(128), json(129)])
      fails(() => parseAttachments(text, 'x'), /it has more than 128 items$/);
    const long = 'a'.padEnd(64 * 1024);
    assert.equal(parseAttachments(long, 'x').length, 1);
    fails(() => parseAttachments(`${long} `, 'x'), /it has more than 65536 characters$/);
    const one = (item: object) => parseAttachments(JSON.stringify([item]), 'x');
    const name = 'n'.repeat(253);
    const most = { name, namespace: 's'.repeat(63), interface: 'i'.repeat(15) };
    assert.deepEqual(one(most), [most]);
    fails(() => one({ name: `${name}n` }), /0\.name: /);
    fails(() => one({ name, namespace: 's'.repeat(64) }), /0\.namespace: /);
    fails(() => one({ name, interface: 'i'.repeat(16) }), /interface name "i{16}" is longer than 15 characters$/);
    fails(() => parseAttachments(`a@${'i'.repeat(16)}`, 'x'), /is longer than 15 characters$/);
    assert.deepEqual(one({ name: 'a', namespace: '', interface: '' }), [{ namespace: 'x', name: 'a' }]);
    fails(() => parseAttachments('a@b@c', 'x'), /"a@b@c" has more than one @$/);
    fails(() => parseAttachments('a/b/c', 'x'), /"a\/b\/c" has more than one \/$/);
  });

  it('invalid attachments are reported with their place', () => {
    fails(() => parseAttachments('[{"name":7}]', 'x'), /: 0\.name: expected string/);
    fails(() => parseAttachments('{}', 'x'), /: it: expected array/);
  });

  it('affinities are read up to 256', () => {
    assert.deepEqual(
      [...parseAffinities('{"a":"none","b":"required"}')],
      [
        ['a', 'none'],
        ['b', 'required'],
      ],
    );
    const many = (count: number) =>
      JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [i, 'none'])));
    assert.equal(parseAffinities(many(256)).size, 256);
    fails(() => parseAffinities(many(257)), /it has more than 256 names/);
    assert.equal(parseAffinities('{}'.padEnd(16 * 1024)).size, 0);
    fails(() => parseAffinities('{}'.padEnd(16 * 1024 + 1)), /it has more than 16384 characters/);
  });

  it('bridge mappings are read, and ignored pairs are reported', () => {
    const ignored: string[] = [];
    assert.deepEqual(
      parseBridgeMappings(' a : br-a ,, ,b,:br-c,d:,a:br-d,e:f:g', (pair, why) => ignored.push(`${pair} ${why}`)),
      [
        { physnet: 'a', bridge: 'br-a' },
        { physnet: 'e', bridge: 'f:g' },
      ],
    );
    assert.deepEqual(ignored, [
      'b maps nothing',
      ':br-c maps nothing',
      'd: maps nothing',
      'a:br-d is the second for its physnet',
    ]);
  });

  it('the context of an operator is read', () => {
    const empty = { bridgePhysnets: new Map(), interfacePhysnets: new Map() };
    assert.deepEqual([parseConfiguredContext({}), parseConfiguredContext(null)], [empty, empty]);
    assert.deepEqual(parseConfiguredContext({ bridgeMappings: 'a:br-a', interfacePhysnets: { bond0: 'b' } }), {
      bridgePhysnets: new Map([['br-a', 'a']]),
      interfacePhysnets: new Map([['bond0', 'b']]),
    });
    assert.throws(
      () => parseConfiguredContext({ interfacePhysnets: { bond0: '' } }),
      /context: interfacePhysnets\.bond0: /,
    );
    assert.throws(() => parseConfiguredContext([]), /context: the whole: /);
  });

  it('the map of an operator overrides discovered networks', () => {
    const [a, b] = [set('0'), set('1')];
    const found = { physnets: new Map([['east', a]]), tunnel: a };
    assert.deepEqual(overlayNetworkMap(found, { physnets: new Map(), tunnel: undefined }), {
      networks: found,
      drift: [],
    });
    assert.deepEqual(overlayNetworkMap(found, { physnets: new Map(), tunnel: b }), {
      networks: { physnets: found.physnets, tunnel: b },
      drift: [{ physnet: undefined, mapped: b, discovered: a }],
    });
  });
});

describe('resolved networks and their findings', () => {
  const ref = (name: string) => ({ namespace: 'ns', name });
  const resolve = (names: readonly string[], preferences: Record<string, string>, exclusive = true) =>
    resolveNetworks({
      interfaces: names.map((name, i) => ({ name: `net${i + 1}`, role: 'secondary', ref: ref(name) })),
      preferences: new Map(Object.entries(preferences)) as never,
      findNad: ({ name }) =>
        name === 'gone' ? undefined : nadFacts({ metadata: {}, spec: { config: CONFIGS[name]! } }),
      context: EMPTY_CONTEXT,
      exclusive,
    });
  const ovn = (topology: string) =>
    JSON.stringify({
      type: 'ovn-k8s-cni-overlay',
      name: 'n',
      netAttachDefName: 'ns/n',
      topology,
      physicalNetworkName: 'east',
    });
  const CONFIGS: Record<string, string> = {
    east: ovn('localnet'),
    over: ovn('layer2'),
    bridge: '{"type":"bridge"}',
    bad: '{',
    vlan: '{"type":"kube-ovn","provider":"x"}',
    chained: `{"name":"n","plugins":[${ovn('localnet')},{"type":"tuning"}]}`,
  };
  const messages = (...args: Parameters<typeof resolve>) =>
    resolve(...args).findings.map(({ code, message }) => `${code}: ${message}`);

  it('are without findings if all networks are valid', () => {
    assert.deepEqual(messages(['east', 'over', 'bridge'], {}), []);
    assert.deepEqual(messages(['east', 'over', 'bridge'], {}, false), []);
    assert.deepEqual(messages(['east', 'bridge'], { net1: 'required', bridge: 'none' }), []);
    assert.deepEqual(messages(['east'], { net1: 'preferred' }, false), []);
  });

  for (const [names, wishes, exclusive, expected] of [
    [
      ['gone'],
      {},
      true,
      [
        'unknown-network: interface net1: there is no NetworkAttachmentDefinition ns/gone that its namespace may use; no NUMA affinity',
      ],
    ],
    [['vlan'], {}, true, ['unknown-network: interface net1: no Kube-OVN subnet belongs to ns/vlan; no NUMA affinity']],
    [
      ['bad'],
      {},
      true,
      [
        'unreadable-network: interface net1: the configuration of ns/bad cannot be read (invalid-json); no NUMA affinity',
      ],
    ],
    [
      ['chained'],
      {},
      true,
      [
        'refused-network: interface net1: OVN-Kubernetes refuses ns/chained, so the VM does not start: it has ovn-k8s-cni-overlay in a list with other plugins; leave it alone in the definition',
      ],
    ],
    [
      ['bridge'],
      { net1: 'required' },
      true,
      [
        'affinity-without-location: interface net1: affinity "required" has no effect, because ns/bridge is on no physnet or tunnel that Plumbline knows',
      ],
    ],
    [
      ['east'],
      { 'ns/east': 'required' },
      false,
      [
        'affinity-without-exclusive-cpus: interface net1: affinity "required" has no effect on a VM without exclusive CPUs, which runs on the whole shared pool',
      ],
    ],
    [
      ['east'],
      { west: 'none' },
      true,
      [
        'unknown-interface: annotation plumbline.dev/numa-affinity names "west", which is no interface or network of this VM (it has: net1)',
      ],
    ],
    [
      [],
      { west: 'none' },
      true,
      [
        'unknown-interface: annotation plumbline.dev/numa-affinity names "west", which is no interface or network of this VM (it has: none)',
      ],
    ],
  ] as const) {
    it(`${names.join()} ${JSON.stringify(wishes)}`, () =>
      assert.deepEqual(messages(names, wishes, exclusive), expected));
  }

  it('list missing definitions', () => {
    assert.deepEqual(resolve(['gone', 'vlan', 'east', 'gone'], {}).missing, [ref('gone')]);
  });

  it('name eight unknown interfaces and count the others', () => {
    const wishes = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}`, 'none']));
    assert.equal(messages(['east'], wishes(8)).length, 8);
    const ten = messages(['east'], wishes(10));
    assert.deepEqual(
      [ten.length, ten[8]],
      [
        9,
        'unknown-interface: annotation plumbline.dev/numa-affinity names 2 more that are no interface or network of this VM',
      ],
    );
  });
});
