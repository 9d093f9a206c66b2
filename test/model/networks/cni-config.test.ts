import assert from 'node:assert/strict';
import { networkAttachmentDefinition } from '../../../kube/resources.ts';
import { mainPlugin, refusalOf } from '../../../model/networks/cni-config.ts';
import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import { classifyNad, isPrimaryNetwork, nadFacts } from '../../../model/networks/nad.ts';
import { nad } from './fixture.ts';

const main = (conf: object) => mainPlugin(JSON.stringify(conf));
describe('the plugin of a definition that creates the interface', () => {
  const gate = { type: 'plumbline-gate', name: 'outer' };
  const ovs = { type: 'ovs' };
  const listed = { name: 'l', plugins: [{ type: 'tuning' }, ovs, { type: 'bridge' }] };
  const inner = { ...ovs, name: 'inner' };
  for (const [what, conf, expected] of [
    ['the first of a list that is no chained one, with the name of the list', listed, { ...ovs, name: 'l' }],
    ['one with its own name in a list without one', { plugins: [{ ...ovs, name: 'own' }] }, { ...ovs, name: 'own' }],
    ['none in a list of chained ones', { plugins: [{ type: 'tuning' }, {}] }, 'no-config'],
    ['none in an empty list', { plugins: [] }, 'no-config'],
    ['the one that a gate wraps, with the gate’s name', { ...gate, delegate: ovs }, { ...ovs, name: 'outer' }],
    ['the one that a gate wraps, with its own name', { ...gate, delegate: inner }, inner],
    ['a gate around nothing', { ...gate, delegate: {} }, gate],
  ] as const) {
    it(`is ${what}`, () => assert.deepEqual(main(conf), expected));
  }

  it('is not read from a text that is empty, no object or too long', () => {
    assert.equal(['', ' \n', 'null'].map(mainPlugin).join(), 'no-config,no-config,invalid-json');
    const longest = '{"type":"ovs"}'.padEnd(256 * 1024);
    assert.deepEqual(mainPlugin(longest), ovs);
    assert.equal(mainPlugin(`${longest} `), 'invalid-json');
    const plugins = (length: number) => main({ plugins: Array.from({ length }, () => ovs) });
    assert.deepEqual([plugins(64), plugins(65)], [{ ...ovs, name: undefined }, 'invalid-json']);
    const bridge = (length: number) => {
      const plugin = main({ ...ovs, bridge: 'b'.repeat(length) });
      return typeof plugin === 'string' ? plugin : plugin.bridge?.length;
    };
    assert.deepEqual([bridge(253), bridge(254)], [253, undefined]);
  });
});
const NAME = 'tenants/data';
const TYPE = { cniVersion: '1.0.0', type: 'ovn-k8s-cni-overlay' };
const OVN = { ...TYPE, name: 'data', topology: 'localnet', netAttachDefName: NAME };
const L2 = { ...OVN, topology: 'layer2' };
const L3 = { ...OVN, topology: 'layer3' };
const { name: _, ...UNNAMED } = OVN;
const FULL = { ...OVN, vlanID: 4095, mtu: 9000, subnets: '10.1.0.0/24, fd00::/64', role: 'secondary' };
const WITH_OTHERS = 'it has ovn-k8s-cni-overlay in a list with other plugins; leave it alone in the definition';
/** Why OVN-Kubernetes or multus refuses a definition `tenants/data`; undefined: both accept it. */
describe('definitions that are refused', () => {
  const byOvn: [string, object, string | undefined][] = [
    ['a localnet with all fields', FULL, undefined],
    [
      'no netAttachDefName',
      { ...OVN, netAttachDefName: undefined },
      `netAttachDefName is missing; it must be "${NAME}"`,
    ],
    ['no name', UNNAMED, 'the name of the network is missing'],
    ['the name default', { ...OVN, name: 'default' }, 'the network name "default" is reserved'],
    ['an unknown topology', { ...OVN, topology: 'ring' }, 'the topology "ring" is not supported'],
    ['no topology: the default network', { ...UNNAMED, topology: '', netAttachDefName: 'x' }, undefined],
    ['localnet with the role primary', { ...OVN, role: 'primary' }, 'localnet does not allow the role "primary"'],
    ['another role', { ...L2, role: 'main' }, 'the role "main" is neither primary nor secondary'],
    ['ipam', { ...OVN, ipam: { type: 'host-local' } }, 'ipam is not supported; use subnets'],
    ['persistent addresses on layer3', { ...L3, allowPersistentIPs: true }, 'layer3 does not allow allowPersistentIPs'],
    ['another transport', { ...L3, transport: 'x' }, 'transport "x" is neither no-overlay nor evpn'],
    ['outboundSNAT alone', { ...L3, outboundSNAT: 'enabled' }, 'outboundSNAT needs the transport no-overlay'],
    ['joinSubnet on localnet', { ...OVN, joinSubnet: '100.65.0.0/16' }, 'localnet does not allow joinSubnet'],
    ['a primary layer2 network', { ...L2, role: 'primary' }, 'a primary layer2 network needs subnets'],
    ['defaultGatewayIPs', { ...L3, defaultGatewayIPs: '10.0.0.1' }, 'defaultGatewayIPs needs layer2'],
    ['a VLAN id that is too high', { ...OVN, vlanID: 4096 }, 'vlanID 4096 is not between 1 and 4095'],
    ['a VLAN id as text', { ...OVN, vlanID: '100' }, 'vlanID: expected number, received string'],
    ['fields in another case, as in Go', { ...UNNAMED, NAME: 'data', VlanId: 100, Role: 'secondary' }, undefined],
    [
      'a field twice, of which the last counts',
      { ...OVN, NetAttachDefName: 'a/b' },
      `netAttachDefName is "a/b" and must be "${NAME}"`,
    ],
    ['a list of one without a name', { plugins: [OVN] }, 'the list of plugins has no name'],
    ['a list with others', { name: 'data', plugins: [OVN, { type: 'tuning' }] }, WITH_OTHERS],
    ['a list and a type', { ...OVN, plugins: [OVN] }, 'it has both a type and a list of plugins'],
  ];
  for (const [what, config, why] of byOvn) {
    it(`OVN-Kubernetes: ${what}: ${why === undefined ? 'accepted' : 'refused'}`, () =>
      assert.deepEqual(refusalOf(JSON.stringify(config), NAME), why && { by: 'OVN-Kubernetes', why }));
  }

  const NO_TYPE = 'it has neither a type nor a list of plugins with types';
  const byMultus: [string, unknown, string | undefined][] = [
    ['neither a type nor plugins', { cniVersion: '1.0.0', name: 'data' }, NO_TYPE],
    ['an empty list', { name: 'data', plugins: [] }, NO_TYPE],
    ['a list whose second plugin has no type', { name: 'data', plugins: [{ type: 'bridge' }, { mtu: 9000 }] }, NO_TYPE],
    ['a number as name', { name: 5, type: 'bridge' }, 'name: expected string, received number'],
  ];
  for (const [what, config, why] of byMultus) {
    it(`multus: ${what}: ${why === undefined ? 'accepted' : 'refused'}`, () =>
      assert.deepEqual(refusalOf(JSON.stringify(config), NAME), why && { by: 'multus', why }));
  }

  for (const [what, config] of [
    ['no configuration: multus reads a file on the node', ''],
    ['no JSON, which has a finding of its own', '{"type":"macvlan",}'],
    ['a list instead of an object', '[]'],
  ] as const) {
    it(`${what}`, () => assert.equal(refusalOf(config, NAME), undefined));
  }

  it('does not compare the name of a definition that is unknown', () => {
    assert.equal(refusalOf(JSON.stringify({ ...OVN, netAttachDefName: 'a/b' }), undefined), undefined);
  });
});

const OVERLAY = { type: 'ovn-k8s-cni-overlay', name: 'n' };
/** The samples of nads.json have a definition of each plugin; the fuzz target nad has those that are almost valid. */
describe('classification of networks', () => {
  const context = {
    ...EMPTY_CONTEXT,
    bridgePhysnets: new Map([['br-a', 'a']]),
    kubeOvnSubnets: [{ name: 's1', provider: 'p', vlan: 'v1' }],
    kubeOvnVlans: [
      { name: 'v1', provider: 'first' },
      { name: 'v1', provider: 'second' },
    ],
  };
  const VF = { 'k8s.v1.cni.cncf.io/resourceName': 'intel.com/vf' };
  for (const [what, config, expected, annotations] of [
    ['a localnet without a name', { type: OVERLAY.type, topology: 'localnet' }, { kind: 'none', warning: 'no-config' }],
    ['a localnet by its name', { ...OVERLAY, topology: 'localnet' }, { kind: 'physnet', physnet: 'n' }],
    ['kube-ovn, the first of two VLANs', { type: 'kube-ovn', provider: 'p' }, { kind: 'physnet', physnet: 'first' }],
    ['kube-ovn without a subnet', { type: 'kube-ovn', provider: 's' }, { kind: 'unknown', warning: 'no-subnet' }],
    ['ovs with a bridge', { type: 'ovs', bridge: 'br-a' }, { kind: 'physnet', physnet: 'a' }, VF],
    ['ovs without a bridge', { type: 'ovs' }, { kind: 'none' }],
    ['ovs with a virtual function', { type: 'ovs' }, { kind: 'device', resourceName: 'intel.com/vf' }, VF],
  ] as const) {
    it(`of ${what}`, () => assert.deepEqual(classifyNad(nadFacts(nad(config, annotations)), context), expected));
  }

  it('is for a primary network only of OVN-Kubernetes with that role', () => {
    const isPrimary = (config: unknown) => isPrimaryNetwork(nadFacts(nad(config)));
    assert.equal(isPrimary({ ...OVERLAY, role: 'primary' }), true);
    for (const config of [{ ...OVERLAY, role: 'secondary' }, { type: 'ovs', role: 'primary' }, '{'])
      assert.equal(isPrimary(config), false);
  });

  it('accepts the API’s own definition, and one without a configuration', () => {
    const parsed = networkAttachmentDefinition.parse({ metadata: { name: 'a' }, spec: { config: '{"type":"sriov"}' } });
    assert.deepEqual(classifyNad(nadFacts(parsed), EMPTY_CONTEXT), { kind: 'device' });
    for (const spec of [undefined, null]) assert.equal(nadFacts({ metadata: {}, spec }).main, 'no-config');
  });
});
