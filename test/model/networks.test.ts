import assert from 'node:assert/strict';
import { CpuSet } from '../../model/cpu-set.ts';
import { NETWORKS_ANNOTATION } from '../../model/networks/attachments.ts';
import { EMPTY_CONTEXT } from '../../model/networks/context.ts';
import { interfacesOf, parseAffinities } from '../../model/networks/interfaces.ts';
import { nadFacts } from '../../model/networks/nad.ts';
import { type NodeReach, outOfReach, reachFinding } from '../../model/networks/reach.ts';
import { resolveNetworks } from '../../model/networks/resolve.ts';
import {
  EVERY_NETWORK,
  interfaceResources,
  preferredResources,
  requiredResources,
} from '../../model/networks/resources.ts';
import { BRIDGE, codesOf, EAST, network, TUNNEL } from './networks/fixture.ts';

const OVN = { cniVersion: '1.1.0', type: 'ovn-k8s-cni-overlay' };
const NADS: Readonly<Record<string, object>> = {
  east: { ...OVN, topology: 'localnet', physicalNetworkName: 'physnet0' },
  west: { ...OVN, topology: 'localnet', physicalNetworkName: 'physnet1' },
  odd: { ...OVN, topology: 'localnet', physicalNetworkName: 'rack 7' },
  overlay: { ...OVN, topology: 'layer2', role: 'secondary' },
  primary: { ...OVN, topology: 'layer2', role: 'primary', subnets: '10.0.0.0/16' },
  bridge: { type: 'bridge', bridge: 'br0' },
  vlan: { type: 'kube-ovn', provider: 'x' },
  chained: { plugins: [{ ...OVN, topology: 'localnet' }, { type: 'tuning' }] },
};
function findNad({ namespace, name }: { readonly namespace: string; readonly name: string }) {
  const config = NADS[name] && JSON.stringify({ name, netAttachDefName: `ns/${name}`, ...NADS[name] });
  const text = name === 'broken' ? '{' : config;
  return namespace === 'ns' && text ? nadFacts({ metadata: { name, namespace }, spec: { config: text } }) : undefined;
}
interface Setting {
  /** VMI networks: name to multus networkName; `pod` is the pod network. */
  readonly networks?: Record<string, string>;
  /** The pod's multus annotation; absent: there is no pod yet. */
  readonly annotation?: string;
  readonly preferences?: Record<string, string>;
  readonly exclusive?: boolean;
  readonly primary?: Parameters<typeof interfacesOf>[0]['primary'];
}
function resolve({ networks, annotation, preferences = {}, exclusive = true, primary }: Setting) {
  const annotations = annotation === undefined ? undefined : { [NETWORKS_ANNOTATION]: annotation };
  const ofVmi = Object.entries(networks ?? {}).map(([name, networkName]) =>
    networkName === 'pod' ? { name, pod: {} } : { name, multus: { networkName } },
  );
  const pod = annotations && { metadata: { annotations }, spec: {} };
  const interfaces = interfacesOf({ namespace: 'ns', pod, vmi: networks && { spec: { networks: ofVmi } }, primary });
  const affinities = parseAffinities(JSON.stringify(preferences));
  return resolveNetworks({ interfaces, preferences: affinities, findNad, context: EMPTY_CONTEXT, exclusive });
}
/** A VM with these networks as interfaces net0, net1 and so on. */
const on = (...names: string[]): Setting => ({
  networks: Object.fromEntries(names.map((name, i) => [`net${i}`, name])),
});
describe('resolved networks of a VM', () => {
  const cases: [what: string, setting: Setting, summary: string[], ...codes: string[]][] = [
    [
      'a physnet is required by default, the pod network never',
      { networks: { default: 'pod', data: 'east' }, annotation: 'east' },
      ['default tunnel none', 'data physnet0 required'],
    ],
    [
      'W13: two attachments of one network',
      { ...on('east', 'east'), annotation: 'east,east' },
      ['net0 physnet0 required', 'net1 physnet0 required'],
    ],
    ['an overlay network needs the tunnel', on('overlay', 'west'), ['net0 tunnel required', 'net1 physnet1 required']],
    [
      'P5: management opts out, another is only preferred',
      { networks: { data: 'east', mgmt: 'west', log: 'overlay' }, preferences: { mgmt: 'none', log: 'preferred' } },
      ['data physnet0 required', 'mgmt physnet1 none', 'log tunnel preferred'],
      'preferred-is-score-only',
    ],
    [
      'a preference may name the network; an interface’s own preference takes precedence',
      { ...on('east', 'east'), preferences: { 'ns/east': 'none', net1: 'required' } },
      ['net0 physnet0 none', 'net1 physnet0 required'],
    ],
    [
      'W13: a primary user-defined network is a pod network',
      { networks: { default: 'pod' }, primary: { namespace: 'ns', name: 'primary' } },
      ['default tunnel none'],
    ],
    ['a VM on the shared pool gets no device', { ...on('east'), exclusive: false }, ['net0 physnet0 none']],
    [
      'a VM on the shared pool requires a network',
      { ...on('east'), exclusive: false, preferences: { 'ns/east': 'required' } },
      ['net0 physnet0 required'],
      'affinity-without-exclusive-cpus',
    ],
    ['a network without a location', { ...on('bridge'), preferences: { bridge: 'none' } }, ['net0 none none']],
    ['an unreadable definition', on('broken'), ['net0 none none'], 'unreadable-network'],
    ['a definition without a subnet', on('vlan'), ['net0 unknown none'], 'unknown-network'],
    ['a definition that OVN-Kubernetes refuses', on('chained'), ['net0 chained required'], 'refused-network'],
  ];
  for (const [what, setting, summary, ...codes] of cases) {
    it(`${what}: ${[...summary, ...codes].join(', ')}`, () => {
      const { networks, findings } = resolve(setting);
      const placeOf = (network: (typeof networks)[number]) =>
        network.kind === 'physnet' ? network.physnet : network.kind;
      const lines = networks.map((network) => `${network.name} ${placeOf(network)} ${network.affinity}`);
      assert.deepEqual([lines, codesOf(findings)], [summary, codes]);
    });
  }

  it('the message about a VM does not grow with the names in it', () => {
    const name = (i: number) => `${i}${'x'.repeat(5000)}`;
    const preferences = new Map(Array.from({ length: 256 }, (_, i) => [name(i), 'required' as const]));
    const pods = { spec: { networks: Array.from({ length: 128 }, (_, i) => ({ name: name(1000 + i), pod: {} })) } };
    const multus = { spec: { networks: [{ name: name(1), multus: { networkName: name(2) } }] } };
    for (const vmi of [pods, multus]) {
      const interfaces = interfacesOf({ namespace: 'ns', vmi });
      const request = { interfaces, preferences, findNad, context: EMPTY_CONTEXT, exclusive: true };
      const { networks, findings } = resolveNetworks(request);
      const { findings: more } = requiredResources(networks, { physnets: new Set(), tunnel: false }, true);
      const text = JSON.stringify([findings, more]);
      assert.ok(findings.length > 0 && text.length < 30_000, `${text.length} characters`);
    }
  });
});
const NOTHING = { physnets: new Set<string>(), tunnel: false };
const WEST = network({ physnet: 'west', affinity: 'preferred' });
describe('the resources of networks', () => {
  const networks = [network(), network({ name: 'net4' }), TUNNEL, BRIDGE, WEST];

  it('are one for each required network of a pod with exclusive CPUs', () => {
    const nothing = { resources: [], requiredNetworks: [], withoutDevice: [], findings: [] };
    const all = { ...nothing, resources: [EAST, 'plumbline.dev/tunnel'], requiredNetworks: networks.slice(0, 3) };
    assert.deepEqual(requiredResources(networks, EVERY_NETWORK, true), all);
    assert.deepEqual(requiredResources(networks, EVERY_NETWORK, false), nothing);
  });

  it('are not requested if no node reports the network, unless the user requires it: the pod then waits', () => {
    const three = [TUNNEL, network(), network({ explicit: true })];
    const { resources, requiredNetworks, findings } = requiredResources(three, NOTHING, true);
    assert.deepEqual([resources, requiredNetworks.length], [[EAST], 1]);
    const without = 'it gets no NUMA affinity, until it is started again with such a node';
    const required = 'it waits until one does, as the annotation plumbline.dev/numa-affinity requires';
    assert.deepEqual(
      findings.map(({ code, message }) => `${code}: ${message}`),
      [
        `unknown-tunnel: interface net2: no node reports a tunnel endpoint of ns/over; ${without}`,
        `unknown-physnet: interface net1: no node reports the physnet east of ns/east; ${without}`,
        `unknown-physnet: interface net1: no node reports the physnet east of ns/east; ${required}`,
      ],
    );
  });

  it('include preferred ones, and those that matter to their pod', () => {
    assert.deepEqual(preferredResources(networks), ['physnet.plumbline.dev/west']);
    assert.deepEqual(preferredResources([{ ...BRIDGE, affinity: 'preferred' }]), []);
    const pairs = interfaceResources([...networks, network({ name: 'no', affinity: 'none' })]).map(String);
    const tunnel = 'plumbline.dev/tunnel,net2';
    assert.deepEqual(pairs, [`${EAST},net1`, `${EAST},net4`, tunnel, 'physnet.plumbline.dev/west,net1']);
  });
});

const set = (text: string) => CpuSet.parse(text);
describe('whether a node can place a guest near its networks', () => {
  const rooms = new Map([4, 6, 5].entries());
  const node = { rooms, alignment: 'best-effort' };
  const located = (...cells: string[]) => cells.map((text, i) => ({ text: `net${i}`, cells: set(text) }));
  const one = (cpus: number, ...cells: string[]) => outOfReach({ cpus, spansCells: false }, located(...cells), node);
  const spanning = (cpus: number, cells: readonly string[], more: Partial<typeof node> = {}) =>
    outOfReach({ cpus, spansCells: true }, located(...cells), { ...node, ...more });

  it('a guest with one NUMA node needs all CPUs on the NUMA nodes that its networks share', () => {
    assert.equal(one(4, '0', '0-1'), undefined);
    assert.deepEqual(one(5, '0', '0-1'), {
      reason: 'larger-than-cells',
      text: 'net0 is on NUMA node 0, net1 is on NUMA nodes 0-1, where pods can have 4 CPUs at most, and it requests 5',
      excess: 1,
    });
    assert.equal(one(10, '0-1'), undefined);
    assert.equal(one(11, '0-1')?.excess, 1);
    assert.deepEqual(one(1, '0', '1'), {
      reason: 'cannot-split',
      text: 'the kubelet cannot split the CPUs: net0 is on NUMA node 0, net1 is on NUMA node 1, and they have no common NUMA node',
    });
  });

  it('a guest that spans NUMA nodes needs some CPUs near each network', () => {
    assert.equal(spanning(100, ['0', '0-1']), undefined);
    const where = 'net0 is on NUMA node 0, net1 is on NUMA node 1';
    for (const alignment of ['restricted', 'single-numa-node']) {
      assert.deepEqual(spanning(14, ['0', '1'], { alignment }), {
        reason: 'cannot-split',
        text: `the kubelet cannot split the CPUs: ${where}; topologyManagerPolicy ${alignment} refuses a pod with devices on different NUMA nodes`,
      });
    }
    // Outside node 0 there is room for 11, outside node 1 for 9.
    assert.equal(spanning(12, ['0', '1']), undefined);
    assert.deepEqual(spanning(11, ['0', '1']), {
      reason: 'may-not-span',
      text: `the kubelet may put all 11 CPUs away from net0: ${where}; the guest needs more than 11 CPUs to be near all of them for certain`,
    });
    assert.match(spanning(11, ['1', '0'])?.text ?? '', /away from net1: /);
    const even = new Map([0, 1, 2].map((cell) => [cell, 4]));
    assert.match(spanning(8, ['0', '1'], { rooms: even })?.text ?? '', /away from net0: /);
  });
});
describe('the finding that no node can', () => {
  /** A node whose two NUMA nodes have this room; the physnets east and west and the tunnel are on these NUMA nodes. */
  const node = (
    room: number,
    { tunnel, ...lists }: { readonly east?: string; readonly west?: string; readonly tunnel?: string },
    alignment = 'best-effort',
  ): NodeReach => ({
    rooms: new Map([0, 1].map((cell) => [cell, room])),
    alignment,
    networks: {
      physnets: new Map(Object.entries(lists).map(([name, list]) => [name, set(list)])),
      tunnel: tunnel === undefined ? undefined : set(tunnel),
    },
  });
  const guest = { cpus: 6, spansCells: false };
  const both = [network(), network({ name: 'net4', physnet: 'west' })];
  const tunneled = [network(), TUNNEL];

  for (const [what, required, nodes] of [
    ['a node that is large enough', [network()], [node(1, { east: '0' }), node(6, { east: '0' })]],
    ['apart here, together there', both, [node(9, { east: '0', west: '1' }), node(9, { east: '1', west: '1' })]],
    ['P4: a bond over both NUMA nodes', both, [node(9, { east: '0-1', west: '1' })]],
  ] as const) {
    it(`is absent: ${what}`, () => assert.equal(reachFinding(required, guest, nodes), undefined));
  }

  const LARGER = 'larger than the NUMA nodes of its networks on every node that it can go to: ';
  const tooLarge = (room: number) =>
    `${LARGER}interface net1 (physnet east) is on NUMA node 0, where pods can have ${room} CPUs at most, and it requests 6`;
  const APART = 'the required networks have no common NUMA node on any node that it can go to: net1 (physnet east), ';
  for (const [what, required, nodes, message, isTooLarge] of [
    ['W13: always apart', both, [node(9, { east: '0', west: '1' })], `${APART}net4 (physnet west)`, false],
    ['the tunnel elsewhere', tunneled, [node(9, { east: '0', tunnel: '1' })], `${APART}net2 (the tunnel)`, false],
    [
      'too large for each: the one that misses the least',
      [network()],
      [node(2, { east: '0' }), node(5, { east: '0' }), node(3, { east: '0' })],
      tooLarge(5),
      true,
    ],
  ] as const) {
    it(`is given: ${what}`, () => assert.deepEqual(reachFinding(required, guest, nodes), { message, isTooLarge }));
  }

  it('names the kubelet that may not span before the one that never does, in any order', () => {
    const spans = { cpus: 6, spansCells: true };
    const nodes = [node(9, { east: '0', tunnel: '1' }, 'restricted'), node(9, { east: '0', tunnel: '1' })];
    const findings = [nodes, nodes.toReversed()].map((order) => reachFinding(tunneled, spans, order));
    assert.match(findings[0]?.message ?? '', /^the kubelet may not span the NUMA nodes of its networks on any node /);
    assert.deepEqual(findings[1], findings[0]);
  });
});
