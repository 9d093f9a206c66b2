import assert from 'node:assert/strict';
import { ALIGN_ANNOTATION } from '../../../model/names.ts';
import type { ClusterView } from '../../../webhook/cluster/cluster-view.ts';
import { gather, podUnderReview } from '../../../webhook/pods/gather.ts';
import { optionsOf, podVector, requestFor } from '../launcher-fixture.ts';

describe('the reads for a decision about a pod', () => {
  const unread = optionsOf({
    view: new Proxy({} as ClusterView, { get: (_, name) => assert.fail(`it reads ${String(name)}`) }),
    lookUpVmi: () => assert.fail('it reads the VMI'),
    fetchNad: () => assert.fail('it reads a definition'),
  });
  const bare = podVector();
  bare.metadata.annotations = {};
  const web = { metadata: { name: 'web', labels: {} }, spec: { containers: [{ name: 'web' }] } };
  const malformed = {
    metadata: { name: 'dpdk', annotations: { [ALIGN_ANNOTATION]: 'whole-cores' } },
    spec: { containers: [{ name: 'dpdk', resources: { limits: { cpu: 'x' } } }] },
  };
  for (const [what, pod, kind] of [
    ['a pod of another owner', web, 'other'],
    ['a hot-plug pod', podVector('hp-volume-pod'), 'other'],
    ['an object that is not a pod', { spec: 'nonsense' }, 'unreadable'],
    ['a launcher that asks for nothing', bare, 'launcher'],
    ['an ordinary pod with a malformed amount', malformed, 'malformed'],
  ] as const) {
    it(`are none for ${what}`, async () => assert.equal((await gather(requestFor(pod), unread)).kind, kind));
  }

  it('are only that of its VMI for a launcher whose VMI does not exist', async () => {
    const facts = await gather(requestFor(podVector()), { ...unread, lookUpVmi: async () => ({ kind: 'absent' }) });
    assert.equal(facts.kind, 'launcher');
  });
});

describe('the namespace of a pod under review', () => {
  for (const [what, request, own, expected] of [
    ['that of the request', 'telco-east', 'other', 'telco-east'],
    ['its own if the request names none', undefined, 'other', 'other'],
  ] as const) {
    it(`is ${what}`, () => {
      const pod = podVector();
      pod.metadata['namespace'] = own;
      const read = podUnderReview({ ...requestFor(pod), namespace: request });
      assert.ok(read.kind === 'launcher');
      assert.equal(read.namespace, expected);
    });
  }
});
