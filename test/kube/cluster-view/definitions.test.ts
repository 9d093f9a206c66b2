import assert from 'node:assert/strict';
import { definitionFacts, definitionsPath } from '../../../kube/cluster-view/definitions.ts';
import { networkAttachmentDefinition } from '../../../kube/resources.ts';

describe('a network definition', () => {
  const factsOf = (config?: object) =>
    definitionFacts(
      networkAttachmentDefinition.parse({
        metadata: { name: 'a', namespace: 'tenant' },
        spec: config && { config: JSON.stringify(config) },
      }),
    );

  it('is reduced to the fields of its first plugin that are there', () => {
    const { main } = factsOf({ type: 'sriov', vlan: 5, other: 'x' });
    assert.deepEqual(typeof main === 'string' ? main : Object.values(main).includes(undefined), false);
    assert.equal(typeof main === 'string' ? main : main.type, 'sriov');
  });

  it('says why it has no plugin', () => assert.equal(typeof factsOf().main, 'string'));

  it('is in the list of its namespace', () => {
    assert.equal(definitionsPath(), '/apis/k8s.cni.cncf.io/v1/network-attachment-definitions');
    assert.equal(definitionsPath('a/b'), '/apis/k8s.cni.cncf.io/v1/namespaces/a%2Fb/network-attachment-definitions');
  });
});
