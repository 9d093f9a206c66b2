import assert from 'node:assert/strict';
import { isForgedMirror, kubeletUid } from '../../../kube/cluster-view/pods.ts';

const HASH = '0123456789abcdef'.repeat(2);

describe('the uid of a pod in its kubelet', () => {
  const CASES: readonly [label: string, annotations: Readonly<Record<string, string>> | undefined, uid: string][] = [
    ['is its own', undefined, 'own'],
    [
      'of a mirror is that of its static pod',
      { 'kubernetes.io/config.mirror': '', 'kubernetes.io/config.hash': HASH },
      HASH,
    ],
    ['of a pod that is no mirror is its own', { 'kubernetes.io/config.hash': HASH }, 'own'],
    ['never is that of another pod', { 'kubernetes.io/config.mirror': '', 'kubernetes.io/config.hash': 'x' }, 'own'],
    ['of a mirror without one is its own', { 'kubernetes.io/config.mirror': '' }, 'own'],
  ];
  for (const [label, annotations, uid] of CASES) {
    it(label, () => assert.equal(kubeletUid({ uid: 'own', annotations }), uid));
  }
});

it('a mirror pod is real only if the Node on which it is owns it', () => {
  const pod = (nodeName: string | undefined, ...owners: [kind: string, name: string][]) => ({
    metadata: {
      annotations: { 'kubernetes.io/config.mirror': '' },
      ownerReferences: owners.map(([kind, name]) => ({ apiVersion: 'v1', kind, name, uid: name })),
    },
    spec: { nodeName, containers: [] },
  });
  assert.equal(isForgedMirror(pod('n1', ['Pod', 'n1'], ['Node', 'n1'])), false);
  for (const forged of [pod('n1'), pod('n1', ['Node', 'n2']), pod('n1', ['Pod', 'n1']), pod(undefined, ['Node', 'n1'])])
    assert.equal(isForgedMirror(forged), true);
  assert.equal(isForgedMirror({ metadata: {}, spec: { nodeName: 'n1', containers: [] } }), false);
});
