import assert from 'node:assert/strict';
import { ALIGN_ANNOTATION } from '../../model/names.ts';
import { type NetworkRef, refText } from '../../model/networks/attachments.ts';
import type { ClusterView } from '../../webhook/cluster/cluster-view.ts';
import { gather, podUnderReview } from '../../webhook/pods/gather.ts';
import { createPodRouting } from '../../webhook/pods/mutate-pod.ts';
import type { AdmissionRequest } from '../../webhook/review/admission-review.ts';
import { recordingLogger } from '../support/logger.ts';
import {
  denialOf,
  kindOf,
  localnet,
  mutationOf,
  optionsOf,
  patched,
  patchOf,
  podVector,
  requestFor,
  setCpu,
  type TestPod,
  validationOf,
  viewOf,
} from './launcher-fixture.ts';

const OURS = 'plumbline-scheduler';
const ROUTE = { schedulerName: OURS, away: undefined };
describe('reviews that a request does not concern', () => {
  const reads = { lookUpVmi: () => assert.fail('no VMI is needed') };
  const reviews = { mutation: mutationOf(reads), routing: createPodRouting(ROUTE), validation: validationOf(reads) };
  const requests: [what: string, request: Partial<AdmissionRequest>][] = [
    ['another kind', { kind: { group: '', version: 'v1', kind: 'Binding' } }],
    ['an update that is not a resize', { operation: 'UPDATE' }],
  ];
  for (const [name, review] of Object.entries(reviews)) {
    for (const [what, request] of requests)
      it(`${name} admits ${what}, and reads nothing`, async () =>
        assert.deepEqual(await review(requestFor(podVector(), request)), { allowed: true }));
  }
});
describe('the mutation of pods', () => {
  it('logs one line for each launcher that it pads or refuses and each pod that it cannot read, except in a dry run', async () => {
    const { log, lines } = recordingLogger();
    const mutate = mutationOf({ log });
    const refused = podVector();
    refused.metadata.annotations['k8s.v1.cni.cncf.io/networks'] = '[{"name":';
    const unreadable = podVector();
    unreadable.metadata.ownerReferences[0]!.name = 'x'.repeat(1e6);
    for (const dryRun of [true, false]) {
      const padded = patched(podVector(), await mutate(requestFor(podVector(), { dryRun })));
      await mutate(requestFor(padded, { dryRun }));
      await mutate(requestFor(refused, { dryRun }));
      await mutate(requestFor(unreadable, { dryRun }));
    }
    assert.deepEqual(
      lines.map(({ msg, vmi, cpusBefore, cpusAfter, code }) => [msg, vmi, code ?? `${cpusBefore} to ${cpusAfter}`]),
      [
        ['launcher padded to whole cores', 'telco-east/dpdk-fwd-01', '9 to 10'],
        ['launcher refused', 'telco-east/dpdk-fwd-01', 400],
        ['unreadable pod refused', undefined, 'undefined to undefined'],
      ],
    );
    assert.match(String(lines[1]?.['reason']), /networks/);
    assert.match(String(lines[2]?.['reason']), /ownerReferences\.0\.name: longer than 253 characters$/);
  });

  it('leaves a pod of another owner unchanged', async () =>
    assert.deepEqual(await mutationOf()(requestFor(podVector('hp-volume-pod'))), { allowed: true }));

  it('warns in its answer about what it notes in the decision', async () => {
    const answer = await mutationOf({ route: ROUTE })(requestFor(launcher('volcano')));
    assert.match(answer.warnings?.join() ?? '', /"volcano".*remove it for plumbline-scheduler/);
    assert.match(JSON.stringify(patchOf(answer)), /OtherScheduler/);
  });
});
describe('the routing of launchers without another decision', () => {
  const route = createPodRouting(ROUTE);

  it('only sets the scheduler, once', async () => {
    const patch = patchOf(await route(requestFor(launcher())));
    assert.deepEqual(patch, [{ op: 'add', path: '/spec/schedulerName', value: OURS }]);
    assert.deepEqual(patchOf(await route(requestFor(launcher(OURS)))), []);
  });

  it('leaves another scheduler, with a warning', async () => {
    const { warnings, ...answer } = await route(requestFor(launcher('volcano')));
    assert.deepEqual(answer, { allowed: true, patch: [] });
    assert.match(warnings?.join() ?? '', /"volcano"/);
  });

  it('is off without a scheduler', async () => {
    const off = createPodRouting({ schedulerName: '', away: 'not asked' });
    assert.deepEqual(patchOf(await off(requestFor(launcher('default-scheduler')))), []);
  });

  for (const [what, pod] of [
    ['a hot-plug pod', podVector('hp-volume-pod')],
    ['an object that is not a pod', { spec: 'nonsense' }],
  ] as const)
    it(`admits ${what}`, async () => assert.deepEqual(await route(requestFor(pod)), { allowed: true }));
});
describe('the validation of a pod after all other webhooks', () => {
  it('admits a pod that matches the decision, and names every change that another webhook reverted', async () => {
    const once = patched(podVector(), await mutationOf()(requestFor(podVector())));
    assert.deepEqual(await validationOf()(requestFor(once)), { allowed: true });
    setCpu(once, '9');
    const { code, message } = denialOf(await validationOf()(requestFor(once)));
    const reverted =
      /another webhook .*\/spec\/containers\/0\/resources\/requests\/cpu should be "10", .*limits\/cpu should be "10"; retry/;
    assert.equal(code, 422);
    assert.match(message, reverted);
  });

  it('tells a launcher without a decision from one that another webhook changed', async () => {
    const { code, message } = denialOf(await validationOf()(requestFor(podVector())));
    assert.equal(code, 422);
    assert.match(message, /without a decision of Plumbline: the API server did not call its mutating webhook/);
    assert.doesNotMatch(message, /another webhook changed/);
  });

  it('W14: refuses what the mutation refuses: a device of Plumbline’s without a decision', async () => {
    const pod = podVector();
    Object.assign(pod.spec.containers[0]!.resources.limits, { 'physnet.plumbline.dev/physnet1': '1' });
    for (const review of [mutationOf(), validationOf()])
      assert.equal(denialOf(await review(requestFor(pod))).code, 403);
  });

  const sized = (cpu: string) => {
    const pod = podVector();
    setCpu(pod, cpu);
    return pod;
  };
  const broken = { spec: 'nonsense' };
  for (const [what, before, after, code, message] of [
    ['of nothing', sized('10'), sized('10'), undefined, undefined],
    ['of the CPUs of a launcher', sized('10'), sized('12'), 422, /cannot be resized/],
    ['of a malformed amount', sized('many'), podVector(), 400, /"many"/],
    ['to an object that is not a Pod', podVector(), broken, 400, /^plumbline: the new object is not a Pod: /],
    ['from an object that is not a Pod', broken, podVector(), 400, /^plumbline: the old object is not a Pod: /],
  ] as const)
    it(`W11: ${code === undefined ? 'admits' : 'refuses'} a resize ${what}`, async () => {
      const resize = { operation: 'UPDATE', subResource: 'resize', oldObject: before } as const;
      const answer = await validationOf()(requestFor(after, resize));
      assert.equal(answer.allowed ? undefined : answer.code, code);
      if (message !== undefined) assert.match(denialOf(answer).message, message);
    });
});
function launcher(schedulerName?: string): TestPod {
  const pod = podVector();
  delete pod.spec['schedulerName'];
  return schedulerName === undefined ? pod : { ...pod, spec: { ...pod.spec, schedulerName } };
}

describe('the reads for a decision about a pod', () => {
  const unread = optionsOf({
    view: new Proxy({} as ClusterView, { get: (_, name) => assert.fail(`it reads ${String(name)}`) }),
    lookUpVmi: () => assert.fail('it reads the VMI'),
    fetchNad: () => assert.fail('it reads a definition'),
  });
  const bare = podVector();
  bare.metadata.annotations = {};
  const web = { metadata: { name: 'web', labels: {} }, spec: { containers: [{ name: 'web' }] } };
  const asking = (cpu: string) => ({
    metadata: { name: 'dpdk', annotations: { [ALIGN_ANNOTATION]: 'whole-cores' } },
    spec: { containers: [{ name: 'dpdk', resources: { limits: { cpu } } }] },
  });
  for (const [what, pod, kind] of [
    ['a pod of another owner', web, 'other'],
    ['a hot-plug pod', podVector('hp-volume-pod'), 'other'],
    ['an object that is not a pod', { spec: 'nonsense' }, 'unreadable'],
    ['a launcher that asks for nothing', bare, 'launcher'],
    ['an ordinary pod with a malformed amount', asking('x'), 'malformed'],
    ['an ordinary pod with more CPUs than any host has', asking('9223372036854775807'), 'malformed'],
  ] as const)
    it(`are none for ${what}`, async () => assert.equal((await gather(requestFor(pod), unread)).kind, kind));

  for (const [what, pod, policy] of [
    ['of a launcher that asks for whole cores', podVector(), 'annotated'],
    ['of a launcher that asks for nothing, if all are aligned', bare, 'auto'],
  ] as const)
    it(`are only that of its VMI, by the owner reference, ${what} and has none`, async () => {
      const lookups: unknown[] = [];
      const lookUpVmi = async (...[namespace, vmi]: readonly unknown[]) => {
        lookups.push([namespace, vmi]);
        return { kind: 'absent' } as const;
      };
      const facts = await gather(requestFor(pod), { ...unread, lookUpVmi, policy });
      assert.ok(facts.kind === 'launcher');
      const [{ name, uid }] = podVector().metadata.ownerReferences as [{ name: string; uid: string }];
      assert.deepEqual([facts.owner, lookups], [{ kind: 'absent' }, [['telco-east', { name, uid }]]]);
    });

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
it('the namespace of a pod under review is that of the request, or its own if the request names none', () => {
  const pod = podVector();
  pod.metadata['namespace'] = 'other';
  for (const namespace of ['telco-east', undefined]) {
    const read = podUnderReview({ ...requestFor(pod), namespace });
    assert.equal(read.kind === 'launcher' && read.namespace, namespace ?? 'other');
  }
});
