import assert from 'node:assert/strict';
import { networkAttachmentDefinition } from '../../../kube/resources.ts';
import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import { classifyNad, isPrimaryNetwork, nadFacts } from '../../../model/networks/nad.ts';
import { nad } from './fixture.ts';

const OVN = { type: 'ovn-k8s-cni-overlay', name: 'n' };
const LOCALNET = { type: OVN.type, topology: 'localnet' };
const RESOURCE = { 'k8s.v1.cni.cncf.io/resourceName': 'intel.com/vf' };
const classify = (config: unknown, annotations?: Readonly<Record<string, string>>, context = EMPTY_CONTEXT) =>
  classifyNad(nadFacts(nad(config, annotations)), context);

/** The samples of nads.json have a definition of each plugin; the fuzz target nad has those that are almost valid. */
describe('classification of networks', () => {
  const context = {
    ...EMPTY_CONTEXT,
    bridgePhysnets: new Map([['br-a', 'a']]),
    kubeOvnSubnets: [
      { name: 's1', provider: 'p', vlan: 'v1' },
      { name: 's2', provider: 'p', vlan: 'v2' },
      { name: 's3', provider: 'q', vlan: 'gone' },
    ],
    kubeOvnVlans: [
      { name: 'v1', provider: 'first' },
      { name: 'v1', provider: 'second' },
      { name: 'v2', provider: 'other' },
    ],
  };
  for (const [what, config, annotations, expected] of [
    ['ovs with a bridge', { type: 'ovs', bridge: 'br-a' }, RESOURCE, { kind: 'physnet', physnet: 'a' }],
    ['ovs without a bridge', { type: 'ovs' }, {}, { kind: 'none' }],
    ['ovs with a virtual function', { type: 'ovs' }, RESOURCE, { kind: 'device', resourceName: 'intel.com/vf' }],
    ['localnet by its name', { ...LOCALNET, name: 'n' }, {}, { kind: 'physnet', physnet: 'n' }],
    ['localnet without a name', LOCALNET, {}, { kind: 'none', warning: 'no-config' }],
    [
      'a Linux bridge with a physnet',
      { type: 'bridge', bridge: 'br' },
      { 'plumbline.dev/physnet': 'd' },
      { kind: 'physnet', physnet: 'd' },
    ],
    ['kube-ovn, the first of two', { type: 'kube-ovn', provider: 'p' }, {}, { kind: 'physnet', physnet: 'first' }],
    ['kube-ovn without a subnet', { type: 'kube-ovn', provider: 's' }, {}, { kind: 'unknown', warning: 'no-subnet' }],
  ] as const) {
    it(`of ${what}`, () => assert.deepEqual(classify(config, annotations, context), expected));
  }

  it('is for a primary network only of OVN-Kubernetes with that role', () => {
    const isPrimary = (config: unknown) => isPrimaryNetwork(nadFacts(nad(config)));
    assert.equal(isPrimary({ ...OVN, role: 'primary' }), true);
    assert.deepEqual([{ ...OVN, role: 'secondary' }, { type: 'ovs', role: 'primary' }, '{'].map(isPrimary), [
      false,
      false,
      false,
    ]);
  });

  it('accepts the API’s own definition, and one without a configuration', () => {
    const parsed = networkAttachmentDefinition.parse({ metadata: { name: 'a' }, spec: { config: '{"type":"sriov"}' } });
    assert.deepEqual(classifyNad(nadFacts(parsed), EMPTY_CONTEXT), { kind: 'device' });
    for (const spec of [undefined, null]) assert.equal(nadFacts({ metadata: {}, spec }).main, 'no-config');
  });
});
