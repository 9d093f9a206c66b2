import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { networkAttachmentDefinition, type Pod, pod as podSchema } from '../../kube/resources.ts';
import { virtualMachineInstance } from '../../kube/virtual-machines.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { ParseError } from '../../model/errors.ts';
import { TUNNEL_RESOURCE } from '../../model/names.ts';
import {
  DEFAULT_NETWORK_ANNOTATION,
  NETWORKS_ANNOTATION,
  parseAttachments,
  refText,
} from '../../model/networks/attachments.ts';
import { EMPTY_CONTEXT, parseBridgeMappings, physnetsByBridge } from '../../model/networks/context.ts';
import {
  type AffinityByInterface,
  type InterfaceSources,
  interfacesOf,
  type NetworkInterface,
  parseAffinities,
} from '../../model/networks/interfaces.ts';
import { classifyNad, type NadShape, nadFacts } from '../../model/networks/nad.ts';
import { type NodeReach, reachFinding } from '../../model/networks/reach.ts';
import { type ResolvedNetwork, resolveNetworks } from '../../model/networks/resolve.ts';
import { requiredResources } from '../../model/networks/resources.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { run as runNads } from '../vectors/nads.ts';

const vectors = join(import.meta.dirname, '../vectors');
const fixture = (name: string): unknown => JSON.parse(readFileSync(join(vectors, `${name}.json`), 'utf8'));

const classify = (nad: NadShape, context = EMPTY_CONTEXT) => classifyNad(nadFacts(nad), context);

function ovnNad(name: string, config: Record<string, unknown>): NadShape {
  const netAttachDefName = `ns/${name}`;
  const whole = { cniVersion: '1.1.0', name, type: 'ovn-k8s-cni-overlay', netAttachDefName, ...config };
  return { metadata: { name, namespace: 'ns' }, spec: { config: JSON.stringify(whole) } };
}

const nads = new Map(
  [
    ovnNad('east', { topology: 'localnet', physicalNetworkName: 'physnet0' }),
    ovnNad('west', { topology: 'localnet', physicalNetworkName: 'physnet1' }),
    ovnNad('odd', { topology: 'localnet', physicalNetworkName: 'rack 7' }),
    ovnNad('overlay', { topology: 'layer2', role: 'secondary' }),
    ovnNad('primary', { topology: 'layer2', role: 'primary', subnets: '10.0.0.0/16' }),
    { metadata: { name: 'bridge', namespace: 'ns' }, spec: { config: '{"type":"bridge","bridge":"br0"}' } },
    { metadata: { name: 'broken', namespace: 'ns' }, spec: { config: '{' } },
  ].map((nad) => [`ns/${nad.metadata.name}`, nad]),
);

interface Setting {
  /** VMI networks: name to multus networkName; `pod` is the pod network. */
  readonly networks?: Record<string, string>;
  /** The pod's multus annotation; absent: there is no pod yet. */
  readonly annotation?: string;
  readonly wishes?: Record<string, string>;
  readonly exclusive?: boolean;
  readonly sources?: Partial<InterfaceSources>;
}

function resolve({ networks, annotation, wishes = {}, exclusive = true, sources = {} }: Setting) {
  const interfaces = interfacesOf({
    namespace: 'ns',
    pod:
      annotation === undefined
        ? undefined
        : { metadata: { annotations: { [NETWORKS_ANNOTATION]: annotation } }, spec: {} },
    vmi: networks && {
      spec: {
        networks: Object.entries(networks).map(([name, networkName]) =>
          networkName === 'pod' ? { name, pod: {} } : { name, multus: { networkName } },
        ),
      },
    },
    ...sources,
  });
  const resolution = resolveNetworks({
    interfaces,
    preferences: parseAffinities(JSON.stringify(wishes)),
    findNad: (ref) => (nads.has(refText(ref)) ? nadFacts(nads.get(refText(ref))!) : undefined),
    context: EMPTY_CONTEXT,
    exclusive,
  });
  const reported = { physnets: new Set(['physnet0', 'physnet1', 'rack 7']), tunnel: true };
  const { resources, findings } = requiredResources(resolution.networks, reported, exclusive);
  return {
    ...resolution,
    summary: resolution.networks.map((one) => `${one.name} ${describeKind(one)} ${one.affinity}`),
    resources,
    codes: [...resolution.findings, ...findings].map(({ code }) => code),
  };
}

function describeKind(one: ResolvedNetwork): string {
  return one.kind === 'physnet' ? one.physnet : one.kind;
}

describe('classification of networks', () => {
  it('is as in the shared samples', () => {
    const outcome = runNads(fixture('nads'), () => undefined);
    assert.deepEqual(outcome.failures, []);
    assert.ok(outcome.ran >= 36);
  });

  it('sees through a gate that wraps another plugin', () => {
    const config = {
      type: 'plumbline-gate',
      name: 'blue',
      delegate: { type: 'ovn-k8s-cni-overlay', topology: 'localnet' },
    };
    const nad = { metadata: {}, spec: { config: JSON.stringify(config) } };
    assert.deepEqual(classify(nad, EMPTY_CONTEXT), { kind: 'physnet', physnet: 'blue' });
  });

  it('never throws, for any configuration', () => {
    const fields = [
      'type',
      'name',
      'topology',
      'bridge',
      'master',
      'plugins',
      'delegate',
      'transport',
      'linkInContainer',
    ];
    const config = fc.oneof(
      fc.string(),
      fc.json(),
      fc.dictionary(fc.constantFrom(...fields), fc.jsonValue()).map((value) => JSON.stringify(value)),
      fc
        .record({
          type: fc.constantFrom('ovs', 'ovn-k8s-cni-overlay', 'kube-ovn', 'macvlan'),
          topology: fc.jsonValue(),
          bridge: fc.jsonValue(),
        })
        .map((value) => JSON.stringify(value)),
    );
    fc.assert(
      fc.property(config, (text) => {
        const { kind } = classify({ metadata: {}, spec: { config: text } }, EMPTY_CONTEXT);
        assert.ok(['physnet', 'tunnel', 'device', 'none', 'unknown'].includes(kind));
      }),
    );
  });

  it('does not read an overlong configuration or field', () => {
    const classOf = (config: object, annotations = {}) =>
      classify({ metadata: { annotations }, spec: { config: JSON.stringify(config) } }, EMPTY_CONTEXT);
    const long = 'x'.repeat(300_000);
    const localnet = { type: 'ovn-k8s-cni-overlay', topology: 'localnet', name: 'blue' };
    assert.deepEqual(classOf({ ...localnet, comment: long }), { kind: 'none', warning: 'invalid-json' });
    const plugins = (length: number) => [...Array.from({ length }, () => ({ type: 'tuning' })), localnet];
    assert.deepEqual(classOf({ plugins: plugins(63) }), { kind: 'physnet', physnet: 'blue' });
    assert.deepEqual(classOf({ plugins: plugins(64) }), { kind: 'none', warning: 'invalid-json' });
    const field = long.slice(0, 254);
    assert.deepEqual(classOf({ ...localnet, physicalNetworkName: field }), { kind: 'physnet', physnet: 'blue' });
    assert.deepEqual(classOf(localnet, { 'plumbline.dev/physnet': long }), { kind: 'physnet', physnet: 'blue' });
  });

  for (const type of ['bridge', 'cnv-bridge', 'macvtap', 'macvlan', 'ipvlan', 'vlan']) {
    it(`puts a network of the plugin ${type} on the physnet of its annotation, and on none without one`, () => {
      const config = JSON.stringify({ type, name: 'data', bridge: 'br-data', master: 'eth1' });
      const classOf = (annotations: object) =>
        classify({ metadata: { annotations }, spec: { config } } as Parameters<typeof classify>[0], EMPTY_CONTEXT).kind;
      assert.deepEqual([classOf({}), classOf({ 'plumbline.dev/physnet': 'data' })], ['none', 'physnet']);
    });
  }

  it('puts a localnet network on the physnet of its name, and on none without a name', () => {
    const classOf = (more: object) => {
      const config = { type: 'ovn-k8s-cni-overlay', topology: 'localnet', ...more };
      return classify({ metadata: {}, spec: { config: JSON.stringify(config) } }, EMPTY_CONTEXT);
    };
    assert.deepEqual(classOf({ name: 'blue' }), { kind: 'physnet', physnet: 'blue' });
    for (const more of [{}, { name: '' }, { name: '', physicalNetworkName: '' }]) {
      assert.deepEqual(classOf(more), { kind: 'none', warning: 'no-config' });
    }
  });

  it('reads bridge mappings in both directions', () => {
    const mappings = parseBridgeMappings('physnet0:br-ex, tenant-a:br-data,shared:br-data,physnet0:br-2,:x,y:,z');
    assert.deepEqual(
      mappings.map(({ physnet, bridge }) => `${physnet}=${bridge}`),
      ['physnet0=br-ex', 'tenant-a=br-data', 'shared=br-data'],
    );
    assert.deepEqual(
      [...physnetsByBridge(mappings)],
      [
        ['br-ex', 'physnet0'],
        ['br-data', 'tenant-a'],
      ],
    );
    assert.deepEqual(parseBridgeMappings(''), []);
  });
});

describe('multus’s annotation', () => {
  for (const text of [
    '[',
    '{"name":"a"}',
    '[{"namespace":"x"}]',
    '[1]',
    '"a"',
    '[{"name":"a","interface":"0123456789abcdef"}]',
    'A',
    'a/b/c',
  ]) {
    it(`is refused as ${text}`, () => assert.throws(() => parseAttachments(text, 'ns'), ParseError));
  }

  for (const field of ['namespace', 'interface', 'mac', 'infiniband-guid']) {
    it(`has an absent ${field} if that is null, as in Go`, () =>
      assert.deepEqual(parseAttachments(JSON.stringify([{ name: 'a', [field]: null }]), 'ns'), [
        { namespace: 'ns', name: 'a' },
      ]));
  }

  it('has fields from names in another case, as in Go', () => {
    assert.deepEqual(parseAttachments('[{"Name":"a","NAMESPACE":"b","Interface":"e1"}]', 'ns'), [
      { namespace: 'b', name: 'a', interface: 'e1' },
    ]);
  });

  const addresses: [string, object, boolean][] = [
    ['text, of a field in another case', { MAC: 'nonsense' }, false],
    ['six bytes', { mac: '02:00:00:aB:cd:ef' }, true],
    ['with hyphens', { mac: '02-00-00-ab-cd-ef' }, true],
    ['in groups of four', { mac: '0200.00ab.cdef' }, true],
    ['empty, which is no address', { mac: '' }, true],
    ['an InfiniBand GUID', { 'infiniband-guid': 'c2:11:22:33:44:55:66:77' }, true],
    ['text', { mac: 'nonsense' }, false],
    ['five bytes', { mac: '02:00:00:ab:cd' }, false],
    ['mixed separators', { mac: '02:00-00:ab:cd:ef' }, false],
    ['an invalid GUID', { 'infiniband-guid': 'c2' }, false],
  ];
  for (const [what, address, isTaken] of addresses) {
    it(`reads an address as multus does: ${what} is ${isTaken ? 'accepted' : 'refused'}`, () => {
      const read = () => parseAttachments(JSON.stringify([{ name: 'east', ...address }]), 'ns');
      if (isTaken) assert.deepEqual(read().map(refText), ['ns/east']);
      else assert.throws(read, /it is not a MAC address/);
    });
  }

  it('refuses too many items or characters or too long names in a short message, before any lookup', () => {
    const long = 'x'.repeat(300);
    for (const text of [
      'a,'.repeat(128),
      JSON.stringify(Array.from({ length: 129 }, () => ({ name: 'a' }))),
      'x'.repeat(70_000),
      ' '.repeat(70_000),
      JSON.stringify([{ name: long }]),
      JSON.stringify([{ name: 'a', namespace: long }]),
      JSON.stringify(Array.from({ length: 100_000 }, () => 1)).slice(0, 60_000),
    ]) {
      assert.throws(
        () => parseAttachments(text, 'ns'),
        (error) => error instanceof ParseError && error.message.length < 500,
        text.slice(0, 20),
      );
    }
    assert.equal(parseAttachments('a,'.repeat(127), 'ns').length, 128);
  });

  it('gives the same result in both forms', () => {
    const label = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?$/);
    const one = fc.record(
      { namespace: label, name: label, interface: fc.option(label, { nil: undefined }) },
      { requiredKeys: ['namespace', 'name'] },
    );
    fc.assert(
      fc.property(fc.array(one, { minLength: 1 }), (list) => {
        const short = list
          .map((item) => `${item.namespace}/${item.name}${item.interface ? `@${item.interface}` : ''}`)
          .join(',');
        assert.deepEqual(parseAttachments(short, 'ns'), parseAttachments(JSON.stringify(list), 'ns'));
      }),
    );
  });
});

describe('interfaces', () => {
  const names = (found: readonly NetworkInterface[]) =>
    found.map(({ name, ref }) => `${name}=${ref ? refText(ref) : 'pod'}`);
  const annotations = (text: string, more: Record<string, string> = {}) => ({
    metadata: { annotations: { [NETWORKS_ANNOTATION]: text, ...more } },
    spec: {},
  });
  const guest = (networks: NonNullable<VmiShape['spec']['networks']>) => ({ spec: { networks } });

  it('use the VMI’s names if there is one, not KubeVirt’s names in the pod', () => {
    const pod: Pod = podSchema.parse(fixture('virt-launcher-pod.admission'));
    const vmi = virtualMachineInstance.parse(fixture('vmi'));
    assert.deepEqual(names(interfacesOf({ namespace: 'telco-east', pod, vmi })), [
      'default=pod',
      'dpdk-east=telco-east/dpdk-net-east',
    ]);
    assert.deepEqual(names(interfacesOf({ namespace: 'telco-east', vmi })), [
      'default=pod',
      'dpdk-east=telco-east/dpdk-net-east',
    ]);
  });

  it('W13: keep duplicate attachments apart, in the VMI’s order, and injected ones with their own name', () => {
    const vmi = guest([
      { name: 'a', multus: { networkName: 'net' } },
      { name: 'b', multus: { networkName: 'other/net' } },
      { name: 'c', multus: { networkName: 'ns/net' } },
    ]);
    const pod = annotations('net@podaaa,other/net@podbbb,net@podccc,mesh@mesh0,last');
    assert.deepEqual(names(interfacesOf({ namespace: 'ns', pod, vmi })), [
      'a=ns/net',
      'b=other/net',
      'c=ns/net',
      'mesh0=ns/mesh',
      'net5=ns/last',
    ]);
  });

  it('omit networks that are no longer attached to the pod', () => {
    const vmi = guest([
      { name: 'a', multus: { networkName: 'net' } },
      { name: 'b', multus: { networkName: 'gone' } },
    ]);
    assert.deepEqual(names(interfacesOf({ namespace: 'ns', pod: annotations('net'), vmi })), ['a=ns/net']);
  });

  it('take the default network from multus, the VMI, or the namespace’s primary network', () => {
    const vmi = guest([{ name: 'default', pod: {} }]);
    const primary = { namespace: 'ns', name: 'udn' };
    const chosen = annotations('', { [DEFAULT_NETWORK_ANNOTATION]: 'infra/fast' });
    assert.deepEqual(names(interfacesOf({ namespace: 'ns', pod: chosen, vmi, primary })), ['default=infra/fast']);
    assert.deepEqual(names(interfacesOf({ namespace: 'ns', vmi, primary })), ['default=ns/udn']);
    const own = guest([{ name: 'main', multus: { networkName: 'infra/fast', default: true } }]);
    assert.deepEqual(names(interfacesOf({ namespace: 'ns', vmi: own })), ['main=infra/fast']);
  });

  it('are empty on the host’s network, and have a pod network for an ordinary pod', () => {
    assert.deepEqual(interfacesOf({ namespace: 'ns', pod: { metadata: {}, spec: { hostNetwork: true } } }), []);
    assert.deepEqual(names(interfacesOf({ namespace: 'ns', pod: annotations('net') })), ['eth0=pod', 'net1=ns/net']);
  });
});

describe('affinity', () => {
  it('reads preferences by name', () => {
    const wishes: AffinityByInterface = parseAffinities('{"dpdk-east":"required","mgmt":"none","x":"preferred"}');
    assert.deepEqual(
      [...wishes],
      [
        ['dpdk-east', 'required'],
        ['mgmt', 'none'],
        ['x', 'preferred'],
      ],
    );
    assert.equal(parseAffinities(' ').size, 0);
  });

  for (const [text, says] of [
    ['required', /not JSON/],
    ['["a"]', /object/],
    ['null', /object/],
    ['{"a":"strict"}', /"a" has the value "strict"; expected one of required, preferred, none/],
    ['{"a":true}', /"a" has the value "true"/],
    ['{"a":{"b":1}}', /"a" has the value/],
    [
      JSON.stringify(Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`n${i}`, 'none']))),
      /more than 256 names/,
    ],
    [`{"a":"${'x'.repeat(20_000)}"}`, /more than 16384 characters/],
  ] as const) {
    it(`refuses ${text.slice(0, 40)}`, () =>
      assert.throws(
        () => parseAffinities(text),
        (error) => error instanceof ParseError && says.test(error.message) && error.message.length < 500,
      ));
  }
});

describe('resolved networks of a VM', () => {
  const cases: [what: string, setting: Setting, summary: string[], resources: string[], codes: string[]][] = [
    [
      'a physnet is required by default, the pod network never',
      { networks: { default: 'pod', data: 'east' }, annotation: 'east' },
      ['default tunnel none', 'data physnet0 required'],
      ['physnet.plumbline.dev/physnet0'],
      [],
    ],
    [
      'W13: two attachments of one network give one resource',
      { networks: { a: 'east', b: 'east' }, annotation: 'east,east' },
      ['a physnet0 required', 'b physnet0 required'],
      ['physnet.plumbline.dev/physnet0'],
      [],
    ],
    [
      'an overlay network needs the tunnel',
      { networks: { a: 'overlay', b: 'west' }, annotation: '[{"name":"overlay"},{"name":"west"}]' },
      ['a tunnel required', 'b physnet1 required'],
      [TUNNEL_RESOURCE, 'physnet.plumbline.dev/physnet1'],
      [],
    ],
    [
      'P5: management opts out, another is only preferred',
      {
        networks: { data: 'east', mgmt: 'west', log: 'overlay' },
        annotation: 'east,west,overlay',
        wishes: { mgmt: 'none', log: 'preferred' },
      },
      ['data physnet0 required', 'mgmt physnet1 none', 'log tunnel preferred'],
      ['physnet.plumbline.dev/physnet0'],
      ['preferred-is-score-only'],
    ],
    [
      'a preference may name the network; an interface’s own preference takes precedence',
      { networks: { a: 'east', b: 'east' }, annotation: 'east,east', wishes: { 'ns/east': 'none', b: 'required' } },
      ['a physnet0 none', 'b physnet0 required'],
      ['physnet.plumbline.dev/physnet0'],
      [],
    ],
    [
      'the pod network may be required',
      { networks: { default: 'pod' }, annotation: '', wishes: { default: 'required' } },
      ['default tunnel required'],
      [TUNNEL_RESOURCE],
      [],
    ],
    [
      'W13: a primary user-defined network is a pod network',
      { networks: { default: 'pod' }, annotation: '', sources: { primary: { namespace: 'ns', name: 'primary' } } },
      ['default tunnel none'],
      [],
      [],
    ],
    [
      'W13: an invalid resource name is encoded',
      { networks: { a: 'odd' }, annotation: 'odd' },
      ['a rack 7 required'],
      ['physnet.plumbline.dev/x--7261636b2037'],
      [],
    ],
    [
      'a VM on the shared pool gets no device',
      { networks: { a: 'east' }, annotation: 'east', exclusive: false },
      ['a physnet0 none'],
      [],
      [],
    ],
    [
      'a VM on the shared pool with a preference gets a finding',
      { networks: { a: 'east' }, annotation: 'east', exclusive: false, wishes: { a: 'required' } },
      ['a physnet0 required'],
      [],
      ['affinity-without-exclusive-cpus'],
    ],
    [
      'a preference for a network without a location gives a finding',
      { networks: { a: 'bridge' }, annotation: 'bridge', wishes: { a: 'required' } },
      ['a none required'],
      [],
      ['affinity-without-location'],
    ],
    [
      'a preference for a missing interface gives a finding',
      { networks: { a: 'east' }, annotation: 'east', wishes: { b: 'none' } },
      ['a physnet0 required'],
      ['physnet.plumbline.dev/physnet0'],
      ['unknown-interface'],
    ],
    [
      'an unreadable definition gives a finding',
      { networks: { a: 'broken' }, annotation: 'broken' },
      ['a none none'],
      [],
      ['unreadable-network'],
    ],
    [
      'a missing definition gives a finding',
      { networks: { a: 'absent' }, annotation: 'absent' },
      ['a unknown none'],
      [],
      ['unknown-network'],
    ],
    [
      'an item without a name gives a finding',
      { annotation: 'east,' },
      ['eth0 tunnel none', 'net1 physnet0 required', 'net2 unknown none'],
      ['physnet.plumbline.dev/physnet0'],
      ['unknown-network'],
    ],
    [
      'networks are resolved before there is a pod',
      { networks: { default: 'pod', a: 'east' } },
      ['default tunnel none', 'a physnet0 required'],
      ['physnet.plumbline.dev/physnet0'],
      [],
    ],
  ];
  for (const [what, setting, summary, resources, codes] of cases) {
    it(what, () => {
      const found = resolve(setting);
      assert.deepEqual(
        { summary: found.summary, resources: found.resources, codes: found.codes },
        { summary, resources, codes },
      );
    });
  }

  it('the message about a VM does not grow with the names in it', () => {
    const name = (i: number) => `${i}${'x'.repeat(5000)}`;
    const wishes = new Map(Array.from({ length: 256 }, (_, i) => [name(i), 'required' as const]));
    const vmi = { spec: { networks: Array.from({ length: 128 }, (_, i) => ({ name: name(1000 + i), pod: {} })) } };
    const multus = { spec: { networks: [{ name: name(1), multus: { networkName: name(2) } }] } };
    for (const guest of [vmi, multus]) {
      const interfaces = interfacesOf({ namespace: 'ns', vmi: guest });
      const findNad = () => undefined;
      const { networks, findings } = resolveNetworks({
        interfaces,
        preferences: wishes,
        findNad,
        context: EMPTY_CONTEXT,
        exclusive: true,
      });
      const { findings: more } = requiredResources(networks, { physnets: new Set(), tunnel: false }, true);
      const said = JSON.stringify([findings, more]);
      assert.ok(findings.length > 0 && said.length < 30_000, `${said.length} characters`);
    }
    const many = { spec: { networks: Array.from({ length: 129 }, (_, i) => ({ name: `n${i}`, pod: {} })) } };
    assert.throws(() => interfacesOf({ namespace: 'ns', vmi: many }), ParseError);
  });

  it('a preferred network of a pod with exclusive CPUs gets a finding that says what the preference does', () => {
    const { findings } = resolve({ networks: { a: 'east' }, annotation: 'east', wishes: { a: 'preferred' } });
    assert.deepEqual(
      findings.map(({ severity, message }) => `${severity}: ${message}`),
      [
        'information: interface a: "preferred" decides the score of nodes only; the kubelet does not know it and may place the VM on another NUMA node; use "required" to keep the VM near its network',
      ],
    );
  });

  it('each missing definition is named once, for a new lookup', () => {
    const { missing } = resolve({ annotation: 'absent,other/absent,absent' });
    assert.deepEqual(missing.map(refText), ['ns/absent', 'other/absent']);
  });

  it('a network that no node reports is not requested, and is named', () => {
    const { networks } = resolve({ networks: { a: 'east', b: 'overlay' }, annotation: 'east,overlay' });
    const { resources, findings } = requiredResources(networks, { physnets: new Set(['other']), tunnel: false }, true);
    assert.deepEqual(resources, []);
    assert.deepEqual(
      findings.map(({ code }) => code),
      ['unknown-physnet', 'unknown-tunnel'],
    );
    assert.match(findings[0]?.message ?? '', /interface a: no node reports the physnet physnet0 of ns\/east/);
  });

  it('a network that the user requires is requested even if no node reports it, with a note that the pod waits', () => {
    const wishes = { a: 'required', b: 'required' };
    const { networks } = resolve({ networks: { a: 'east', b: 'overlay' }, annotation: 'east,overlay', wishes });
    const {
      resources,
      requiredNetworks: held,
      findings,
    } = requiredResources(networks, { physnets: new Set(), tunnel: false }, true);
    assert.deepEqual(resources, ['physnet.plumbline.dev/physnet0', 'plumbline.dev/tunnel']);
    assert.equal(held.length, 2);
    assert.deepEqual(
      findings.map(({ message }) => message),
      [
        'interface a: no node reports the physnet physnet0 of ns/east; it waits until one does, as the annotation plumbline.dev/numa-affinity requires',
        'interface b: no node reports a tunnel endpoint of ns/overlay; it waits until one does, as the annotation plumbline.dev/numa-affinity requires',
      ],
    );
    assert.deepEqual(requiredResources(networks, { physnets: new Set(), tunnel: false }, false).resources, []);
  });

  it('a definition of OVN-Kubernetes in a list with other plugins causes a warning, because OVN-Kubernetes refuses it', () => {
    const ovn = { type: 'ovn-k8s-cni-overlay', topology: 'localnet', netAttachDefName: 'ns/chain' };
    const said = (config: object) =>
      resolveNetworks({
        interfaces: [{ name: 'a', role: 'secondary', ref: { namespace: 'ns', name: 'chain' } }],
        preferences: new Map(),
        findNad: () => nadFacts({ metadata: {}, spec: { config: JSON.stringify(config) } }),
        context: EMPTY_CONTEXT,
        exclusive: true,
      }).findings.map(({ code, message }) => `${code}: ${message}`);
    for (const plugins of [
      [ovn, { type: 'tuning' }],
      [{ type: 'plumbline-gate' }, { ...ovn, topology: 'layer2' }],
    ]) {
      assert.deepEqual(said({ name: 'n', plugins }), [
        'refused-network: interface a: OVN-Kubernetes refuses ns/chain, so the VM does not start: it has ovn-k8s-cni-overlay in a list with other plugins; leave it alone in the definition',
      ]);
    }
    assert.deepEqual(said({ name: 'n', plugins: [ovn] }), [], 'a list of one is none to it');
    assert.deepEqual(said({ name: 'n', plugins: [{ type: 'bridge', bridge: 'br' }, { type: 'tuning' }] }), []);
  });

  it('a physnet with too long a name is reported', () => {
    const long = 'ü'.repeat(20);
    const one: ResolvedNetwork = {
      kind: 'physnet',
      physnet: long,
      name: 'a',
      role: 'secondary',
      network: 'ns/n',
      affinity: 'required',
    };
    const { resources, findings } = requiredResources([one], { physnets: new Set([long]), tunnel: false }, true);
    assert.deepEqual([resources, findings.map(({ code }) => code)], [[], ['physnet-name-too-long']]);
  });

  it('the API’s own definition is accepted', () => {
    const parsed = networkAttachmentDefinition.parse({ metadata: { name: 'a' }, spec: { config: '{"type":"sriov"}' } });
    assert.deepEqual(classify(parsed, EMPTY_CONTEXT), { kind: 'device' });
  });
});

describe('required networks together', () => {
  /** Pods can have eight CPUs on each of its two NUMA nodes. */
  const node = (physnets: Record<string, string>, tunnel?: string): NodeReach => ({
    networks: {
      physnets: new Map(Object.entries(physnets).map(([name, cells]) => [name, CpuSet.parse(cells)])),
      tunnel: tunnel === undefined ? undefined : CpuSet.parse(tunnel),
    },
    rooms: new Map([
      [0, 8],
      [1, 8],
    ]),
    alignment: 'best-effort',
  });
  const APART = /^the required networks have no common NUMA node on any node .*: /;
  const NOWHERE = /^no node that it can go to has all its required networks: /;
  const { networks } = resolve({ networks: { a: 'east', b: 'west' }, annotation: 'east,west' });
  const withTunnel = resolve({ networks: { a: 'east', t: 'overlay' }, annotation: 'east,overlay' }).networks;

  for (const [what, required, nodes, answer] of [
    ['no required network', [], [], undefined],
    ['no node', networks, [], undefined],
    ['one NUMA node for both', networks, [node({ physnet0: '0', physnet1: '0' })], undefined],
    ['W13: always apart', networks, [node({ physnet0: '0', physnet1: '1' })], APART],
    [
      'apart here, together there',
      networks,
      [node({ physnet0: '0', physnet1: '1' }), node({ physnet0: '1', physnet1: '1' })],
      undefined,
    ],
    ['P4: a bond over both NUMA nodes', networks, [node({ physnet0: '0-1', physnet1: '1' })], undefined],
    ['a NIC without a known NUMA node', networks, [node({ physnet0: '', physnet1: '1' })], undefined],
    ['no node with both', networks, [node({ physnet0: '0' }), node({ physnet1: '0' })], NOWHERE],
    ['the tunnel elsewhere', withTunnel, [node({ physnet0: '0' }, '1')], APART],
    ['no tunnel', withTunnel, [node({ physnet0: '0' })], NOWHERE],
  ] as const) {
    it(`${what}: ${answer ?? 'no message'}`, () => {
      const found = reachFinding(required, { cpus: 4, spansCells: false }, nodes);
      if (answer === undefined) assert.equal(found, undefined);
      else assert.match(found?.message ?? '', answer);
      assert.ok(!found?.isTooLarge);
    });
  }

  const east = resolve({ networks: { a: 'east' }, annotation: 'east' }).networks;
  const small: NodeReach = {
    ...node({ physnet0: '1' }),
    rooms: new Map([
      [0, 8],
      [1, 4],
    ]),
  };
  for (const [what, required, guest, nodes, answer, isTooLarge] of [
    [
      'a guest that fits one of two nodes',
      east,
      { cpus: 8, spansCells: false },
      [small, node({ physnet0: '0' })],
      undefined,
      false,
    ],
    [
      'too large for both: the nearest one gives the difference',
      east,
      { cpus: 10, spansCells: false },
      [small, node({ physnet0: '0' })],
      /^larger than the NUMA nodes of its networks on every node .*: interface a \(physnet physnet0\) is on NUMA node 0, where pods can have 8 CPUs at most, and it requests 10$/,
      true,
    ],
    [
      'a node without the network does not count',
      east,
      { cpus: 10, spansCells: false },
      [node({}), small],
      /4 CPUs at most/,
      true,
    ],
    [
      'too large on one node, apart on the other: not only its size',
      networks,
      { cpus: 10, spansCells: false },
      [node({ physnet0: '0', physnet1: '0' }), node({ physnet0: '0', physnet1: '1' })],
      /8 CPUs at most/,
      false,
    ],
    [
      'a guest with NUMA nodes of its own has part of its CPUs near a network',
      east,
      { cpus: 12, spansCells: true },
      [small],
      undefined,
      false,
    ],
    [
      'two networks apart, and too large to miss one',
      networks,
      { cpus: 10, spansCells: true },
      [node({ physnet0: '0', physnet1: '1' })],
      undefined,
      false,
    ],
    [
      'two networks apart, and small enough to miss one',
      networks,
      { cpus: 8, spansCells: true },
      [node({ physnet0: '0', physnet1: '1' })],
      /^the kubelet may not span .* needs more than 8 CPUs/,
      false,
    ],
  ] as const) {
    it(`${what}: ${answer ?? 'no message'}`, () => {
      const found = reachFinding(required, guest, nodes);
      if (answer === undefined) assert.equal(found, undefined);
      else assert.match(found?.message ?? '', answer);
      assert.equal(found?.isTooLarge ?? false, isTooLarge);
    });
  }
});
