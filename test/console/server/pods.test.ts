import assert from 'node:assert/strict';
import { shownPod, watchedPod } from '../../../console/server/pods.ts';
import { watchedInstance, watchedMachine } from '../../../console/server/vms.ts';
import { explainedPod, explainedVmi } from '../../../diagnosis/objects.ts';

describe('the pods of the console', () => {
  const pod = (...owners: string[]) => ({
    metadata: {
      name: 'static-n1',
      namespace: 'tenant',
      uid: 'own',
      annotations: { 'kubernetes.io/config.mirror': 'x', 'kubernetes.io/config.hash': '0123456789abcdef'.repeat(2) },
      ownerReferences: owners.map((name) => ({ apiVersion: 'v1', kind: 'Node', name, uid: name })),
    },
    spec: { nodeName: 'n1', containers: [{ name: 'c', resources: { limits: { cpu: '2', memory: '1Gi' } } }] },
    status: { phase: 'Running', qosClass: 'Guaranteed' },
  });

  it('have the uid that a static pod has in its kubelet, and no forged mirror, which no kubelet runs', () => {
    assert.equal(shownPod(watchedPod.parse(pod('n1')))?.kubeletUid, '0123456789abcdef'.repeat(2));
    assert.equal(shownPod(watchedPod.parse(pod())), undefined);
  });

  it('are there, as are VMs and instances, whatever their authors write into annotations', () => {
    const { metadata, ...rest } = pod();
    const annotations = { 'plumbline.dev/cpu-mask': '0:'.repeat(10_000) };
    const written = { ...rest, metadata: { ...metadata, annotations }, spec: { ...rest.spec, domain: {} } };
    for (const schema of [watchedPod, watchedMachine, watchedInstance, explainedPod, explainedVmi]) {
      assert.equal(schema.parse(written).metadata.name, 'static-n1');
    }
  });
});
