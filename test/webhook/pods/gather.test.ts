import assert from 'node:assert/strict';
import { ALIGN_ANNOTATION } from '../../../model/names.ts';
import { type NetworkRef, refText } from '../../../model/networks/attachments.ts';
import type { ClusterView } from '../../../webhook/cluster/cluster-view.ts';
import { gather, podUnderReview } from '../../../webhook/pods/gather.ts';
import { kindOf, localnet, optionsOf, podVector, requestFor, viewOf } from '../launcher-fixture.ts';

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

  for (const [what, pod, policy] of [
    ['of a launcher that asks for whole cores', podVector(), 'annotated'],
    ['of a launcher that asks for nothing, if all are aligned', bare, 'auto'],
  ] as const) {
    it(`are only that of its VMI, by the owner reference, ${what} and has none`, async () => {
      const asked: unknown[] = [];
      const lookUpVmi = async (...[namespace, vmi]: readonly unknown[]) => {
        asked.push([namespace, vmi]);
        return { kind: 'absent' } as const;
      };
      const facts = await gather(requestFor(pod), { ...unread, lookUpVmi, policy });
      assert.ok(facts.kind === 'launcher');
      const [{ name, uid }] = podVector().metadata.ownerReferences as [{ name: string; uid: string }];
      assert.deepEqual([facts.owner, asked], [{ kind: 'absent' }, [['telco-east', { name, uid }]]]);
    });
  }

  it('W13: include a definition with an unknown physnet once, because it may have been corrected', async () => {
    const fetched: NetworkRef[] = [];
    const fetchNad = async (ref: NetworkRef) => {
      fetched.push(ref);
      return localnet('physnet1');
    };
    const view = viewOf([kindOf(2, { physnets: { physnet1: '1' } })], { findNad: () => localnet('typo') });
    const facts = await gather(requestFor(podVector()), optionsOf({ view, fetchNad }));
    assert.ok(facts.kind === 'launcher' && facts.owner.kind === 'found');
    assert.deepEqual([...facts.owner.cluster.networks.definitions.values()], [localnet('physnet1')]);
    assert.deepEqual(fetched.map(refText), ['telco-east/dpdk-net-east']);
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
