import assert from 'node:assert/strict';
import { networkAttachmentDefinition } from '../../../kube/resources.ts';
import { EMPTY_CONTEXT } from '../../../model/networks/context.ts';
import { classifyNad, isPrimaryNetwork, nadFacts } from '../../../model/networks/nad.ts';
import { nad } from './fixture.ts';

const OVN = { type: 'ovn-k8s-cni-overlay', name: 'n' };

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
    ['a localnet without a name', { type: OVN.type, topology: 'localnet' }, { kind: 'none', warning: 'no-config' }],
    ['a localnet by its name', { ...OVN, topology: 'localnet' }, { kind: 'physnet', physnet: 'n' }],
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
