import assert from 'node:assert/strict';
import { ALIGN_ANNOTATION } from '../../../model/names.ts';
import type { ClusterView } from '../../../webhook/cluster/cluster-view.ts';
import { type GatherOptions, gather, podUnderReview } from '../../../webhook/pods/gather.ts';
import { localnet, optionsOf, podVector, requestFor, viewOf } from '../launcher-fixture.ts';

/** Options that count what is read, by name. */
function counted(facts: Partial<ClusterView> = {}): { options: GatherOptions; reads: Record<string, number> } {
  const reads: Record<string, number> = {};
  const counting = <T extends object>(of: T): T =>
    new Proxy(of, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          reads[String(name)] = (reads[String(name)] ?? 0) + 1;
          return Reflect.apply(value, target, args) as unknown;
        };
      },
    });
  const { view, lookUpVmi, fetchNad, route, ...rest } = optionsOf({ view: viewOf(undefined, facts) });
  const readers = counting({ lookUpVmi, fetchNad });
  return {
    options: {
      ...rest,
      view: counting(view),
      lookUpVmi: (...args) => readers.lookUpVmi(...args),
      fetchNad: (ref) => readers.fetchNad(ref),
      route: counting(route),
    },
    reads,
  };
}

describe('the reads for a decision about a pod', () => {
  const web = { metadata: { name: 'web', labels: {} }, spec: { containers: [{ name: 'web' }] } };
  for (const [what, pod] of [
    ['a pod of another owner', web],
    ['a hot-plug pod', podVector('hp-volume-pod')],
    ['an object that is not a pod', { spec: 'nonsense' }],
  ] as const) {
    it(`${what}: nothing`, async () => {
      const { options, reads } = counted();
      await gather(requestFor(pod), options);
      assert.deepEqual(reads, {});
    });
  }

  it('a launcher that asks for nothing: whether its scheduler works', async () => {
    const { options, reads } = counted();
    const pod = podVector();
    pod.metadata.annotations = {};
    await gather(requestFor(pod), options);
    assert.deepEqual(reads, { schedulerAway: 1 });
  });

  it('a launcher whose VMI does not exist: its VMI, and no cluster facts', async () => {
    const { options, reads } = counted();
    await gather(requestFor(podVector()), { ...options, lookUpVmi: async () => ({ kind: 'absent' }) });
    assert.deepEqual(reads, { schedulerAway: 1 });
  });

  for (const [what, intent, amount, reads] of [
    ['asks for whole cores and has exclusive CPUs', 'whole-cores', '3', 1],
    ['asks for whole cores without exclusive CPUs', 'whole-cores', '2500m', undefined],
    ['has exclusive CPUs and an intent without an effect', 'unknown', '3', undefined],
  ] as const) {
    it(`an ordinary pod that ${what}: ${reads ?? 'not'} the definition of a network that no node reports`, async () => {
      const found = counted({ findNad: () => localnet('east') });
      const amounts = { cpu: amount, memory: '1Gi' };
      const containers = [{ name: 'dpdk', resources: { requests: amounts, limits: amounts } }];
      const annotations = { [ALIGN_ANNOTATION]: intent, 'k8s.v1.cni.cncf.io/networks': 'east' };
      await gather(requestFor({ metadata: { name: 'dpdk', annotations }, spec: { containers } }), found.options);
      assert.equal(found.reads['fetchNad'], reads);
    });
  }

  it('an ordinary pod with a malformed amount: nothing else', async () => {
    const { options, reads } = counted({});
    const containers = [{ name: 'dpdk', resources: { limits: { cpu: 'x' } } }];
    const metadata = { name: 'dpdk', annotations: { [ALIGN_ANNOTATION]: 'whole-cores' } };
    const why = 'quantity "x": expected a number with an optional suffix, as in 9, 500m or 8Gi';
    assert.deepEqual(await gather(requestFor({ metadata, spec: { containers } }), options), { kind: 'malformed', why });
    assert.deepEqual(reads, { schedulerAway: 1 });
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
