import assert from 'node:assert/strict';
import { KubeError } from '../../../kube/client.ts';
import { ArgsError, schedulingPod, softTopologyKeys, waitsToBind } from '../../../scheduler-plugin/extender/args.ts';
import { createExplainer, readExplainedPod } from '../../../scheduler-plugin/extender/explain.ts';
import { preempt } from '../../../scheduler-plugin/extender/preempt.ts';
import { type ExtenderFixture, extenderOf, onNode, owned, podOf, statusOf, withUid } from '../extender-fixture.ts';

/** `c` has four CPUs of n1, `d` has the other ten. */
const full = statusOf({ assignments: [owned('c', '1-2,9-10'), owned('d', '3-7,11-15')] });
const victims = (...uids: string[]) => ({ Pods: uids.map((UID) => ({ UID })), NumPDBViolations: 0 });
describe('nodes that qualify for preemption', () => {
  const setUp = (fixture: ExtenderFixture = { nodes: { n1: full } }) => {
    const under = extenderOf(fixture);
    const answer = (body: object) =>
      preempt(under.extender, 'refuse', JSON.parse(JSON.stringify(body))).NodeNameToMetaVictims;
    const kept = (pod: object, nodes: object) => answer({ Pod: pod, NodeNameToMetaVictims: nodes });
    return { ...under, answer, kept };
  };

  it('are those where the pod fits after the victims are removed', () => {
    const { kept } = setUp();
    assert.deepEqual(kept(podOf('4'), { n1: victims('c') }), { n1: victims('c') });
    assert.deepEqual(kept(podOf('6'), { n1: victims('c') }), {});
    assert.deepEqual(kept(podOf('6'), { n1: victims('c', 'd') }), { n1: victims('c', 'd') });
    assert.deepEqual(kept(podOf('4'), { n1: victims() }), {});
  });

  it('include those where the victims may have the devices: a report does not name their pods', () => {
    const devices = [{ resource: 'vendor.example/vf', groups: [{ cells: '0', total: 1, free: 0 }] }];
    const { kept } = setUp({ nodes: { n1: { ...full, devices } } });
    assert.deepEqual(kept(podOf('4', ['vendor.example/vf']), { n1: victims('c') }), { n1: victims('c') });
  });

  it('include nodes without a prediction: unknown nodes, nodes without a report, and all nodes for a pod on shared CPUs', () => {
    const odd = statusOf({ kubeletVersion: 'v1.99.0' });
    const { kept } = setUp({ nodes: { n1: full, n2: undefined, n3: odd } });
    const nodes = { n2: victims('x'), n3: victims('x'), elsewhere: victims('x') };
    assert.deepEqual(kept(podOf('400'), { n1: victims('c'), ...nodes }), nodes);
    assert.deepEqual(kept(podOf('500m'), { n1: victims('x') }), { n1: victims('x') });
  });

  it('are evaluated with their pods in flight, except the victims and the pod itself', () => {
    const { kept, see } = setUp({ nodes: { n1: statusOf() } });
    const bound = withUid(podOf('12'), 'in-flight');
    see(onNode(bound));
    assert.deepEqual(kept(podOf('4'), { n1: victims('other') }), {});
    assert.deepEqual(kept(podOf('4'), { n1: victims('in-flight') }), { n1: victims('in-flight') });
    assert.deepEqual(kept(withUid(podOf('12'), 'in-flight'), { n1: victims() }), { n1: victims() });
  });

  it('are returned with their victims, in either form, and the number of violated disruption budgets', () => {
    const { answer } = setUp();
    const whole = { n1: { Pods: [{ metadata: { uid: 'c' } }], NumPDBViolations: 2 }, x: {} };
    assert.deepEqual(answer({ Pod: podOf('4'), NodeNameToVictims: whole }), {
      n1: { Pods: [{ UID: 'c' }], NumPDBViolations: 2 },
      x: { Pods: [], NumPDBViolations: 0 },
    });
    const y = { ...victims('a'), NumPDBViolations: 3 };
    assert.deepEqual(answer({ Pod: podOf('4'), NodeNameToMetaVictims: { x: {}, y } }), { x: victims(), y });
    assert.deepEqual(answer({ Pod: podOf('4') }), {});
  });

  it('are not returned for an empty or malformed body, or by a replica that is not active', () => {
    const { extender } = setUp();
    const ask = (body: unknown, to = extender) => preempt(to, 'refuse', body);
    assert.throws(() => ask(undefined), new ArgsError('the body is empty: expected ExtenderPreemptionArgs'));
    assert.throws(() => ask({ Pod: 1 }), /the body is not ExtenderPreemptionArgs: Pod: /);
    const standby = setUp({ active: () => false }).extender;
    assert.throws(() => ask({ Pod: podOf('4') }, standby), /another kube-scheduler has bound are not read yet/);
  });
});
const pod = (spec: object) => schedulingPod.parse({ ...podOf('4'), spec: { ...podOf('4').spec, ...spec } });
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';
const podTerm = (topologyKey: string) => ({ weight: 1, podAffinityTerm: { topologyKey } });
const nodeTerm = (...keys: string[]) => ({
  weight: 1,
  preference: { matchExpressions: keys.map((key) => ({ key, operator: 'Exists' })) },
});
const spread = (topologyKey: string, whenUnsatisfiable = 'ScheduleAnyway') => ({ topologyKey, whenUnsatisfiable });
const preferred = (...terms: readonly object[]) => ({ [PREFERRED]: terms });
describe('the topology keys of soft constraints', () => {
  const withoutKeys = [{}, { matchExpressions: null }].map((preference) => ({ weight: 1, preference }));
  const affinity = {
    podAffinity: preferred(podTerm('two'), podTerm('one')),
    podAntiAffinity: preferred(podTerm('three')),
    nodeAffinity: preferred(nodeTerm('four', 'five')),
  };
  const CASES: readonly [string, object, readonly string[]][] = [
    ['null', { affinity: null, topologySpreadConstraints: null }, []],
    [
      'a spread that may be violated, and one that may not',
      { topologySpreadConstraints: [spread('zone'), spread('rack', 'DoNotSchedule')] },
      ['zone'],
    ],
    [
      'preferred nodes, by several labels, by none and by null',
      { affinity: { nodeAffinity: preferred(nodeTerm('a', 'b'), ...withoutKeys) } },
      ['a', 'b'],
    ],
    [
      'each key once, and at most four, spreads first',
      { topologySpreadConstraints: [spread('one')], affinity },
      ['one', 'two', 'three', 'four'],
    ],
    ['constraints in an unknown form', { topologySpreadConstraints: [7], affinity: { podAffinity: 7 } }, []],
  ];
  for (const [what, spec, keys] of CASES)
    it(`${what}: ${keys.join() || 'none'}`, () => assert.deepEqual(softTopologyKeys(pod(spec)), keys));
});
describe('a pod that the scheduler may bind later', () => {
  const CASES: readonly [string, object, boolean][] = [
    ['null', { volumes: null, resourceClaims: null }, false],
    ['a claim among other volumes', { volumes: [{ emptyDir: {} }, { persistentVolumeClaim: {} }] }, true],
    ['a resource claim', { resourceClaims: [{ name: 'gpu' }] }, true],
    ['a group, since Kubernetes 1.36', { schedulingGroup: { podGroupName: 'group' } }, true],
    ['a group in Kubernetes 1.35', { workloadRef: { name: 'workload', podGroup: 'group' } }, true],
    ['volumes in an unknown form', { volumes: 7, resourceClaims: 7 }, false],
  ];
  for (const [what, spec, waits] of CASES)
    it(`${what}: ${waits ? 'yes' : 'no'}`, () => assert.equal(waitsToBind(pod(spec)), waits));
});

interface Explanation {
  readonly active: boolean;
  readonly pod: object;
  readonly reservation?: { readonly kind: string; readonly nodes: object };
  readonly nodes: readonly Readonly<Record<string, unknown>>[];
  readonly decisions?: readonly { readonly uid: string }[];
}
const setUp = (fixture: ExtenderFixture = {}, found: object | Error = podOf('4')) => {
  const under = extenderOf(fixture);
  const paths: string[] = [];
  const client = {
    get: async (path: string) => {
      paths.push(path);
      if (found instanceof Error) throw found;
      return found;
    },
  };
  const state = { active: true };
  const { extender, decisions } = under;
  const explainer = createExplainer({ extender, decisions, client, isActive: () => state.active });
  return {
    ...under,
    paths,
    replica: state,
    client,
    explainer,
    ofPod: async (name: string | null) => (await explainer.ofPod(name)) as Explanation,
    ofBody: async (body: unknown) => (await explainer.ofBody(JSON.parse(JSON.stringify(body)))) as Explanation,
  };
};
describe('the explanation of a pod', () => {
  it('reads the pod from the API server and lists only its decisions', async () => {
    const { ofPod, filter, paths, replica } = setUp();
    filter(podOf('4'));
    filter(withUid(podOf('2'), 'other'));
    const explained = await ofPod('default/vm');
    assert.deepEqual(paths, ['/api/v1/namespaces/default/pods/vm']);
    assert.deepEqual(
      [explained.active, explained.pod, explained.decisions?.map(({ uid }) => uid)],
      [true, { namespace: 'default', name: 'vm', uid: 'pod-uid' }, ['pod-uid']],
    );
    replica.active = false;
    assert.equal((await ofPod('default/vm')).active, false);
  });

  for (const name of ['', 'vm', 'a/b/c', 'a/B', '../secrets'])
    it(`refuses pod=${name} and does not ask the API server`, async () => {
      const { client, paths } = setUp();
      await assert.rejects(readExplainedPod(client, name), new ArgsError(`pod=${name}: expected namespace/name`));
      assert.deepEqual(paths, []);
    });

  it('reports a pod that does not exist, and passes on other failures', async () => {
    const gone = setUp({}, new KubeError(404, 'NotFound', 'no'));
    await assert.rejects(gone.ofPod('default/vm'), new ArgsError('pod default/vm does not exist'));
    const failure = new KubeError(503, 'ServiceUnavailable', 'down');
    await assert.rejects(setUp({}, failure).ofPod('default/vm'), failure);
  });

  it('accepts a pod without a name, a namespace and a uid, for all nodes', async () => {
    const { ofBody } = setUp({ nodes: { n1: statusOf(), n2: statusOf() } });
    const nameless = { ...podOf('4'), metadata: {} };
    for (const body of [nameless, { Pod: nameless }, { Pod: nameless, NodeNames: null }]) {
      const { pod, nodes, reservation } = await ofBody(body);
      assert.deepEqual(
        [pod, nodes.map(({ node }) => node), reservation],
        [{ namespace: '', name: '', uid: '' }, ['n1', 'n2'], undefined],
      );
    }
    const { nodes } = await ofBody({ Pod: nameless, NodeNames: ['n2', 'gone'] });
    const verdicts = nodes.map(({ node, fits, text }) => `${node} ${fits} ${text}`);
    assert.deepEqual(verdicts, ['n2 true undefined', 'gone false node is not known yet']);
  });

  it('shows the reserved CPUs, and an empty text where they are not predicted', async () => {
    const nodes = { n1: statusOf(), odd: statusOf({ kubeletVersion: 'v1.99.0' }) };
    const { filter, ofBody, see } = setUp({ nodes, policy: 'count-check' });
    filter(podOf('4'));
    const { reservation, nodes: shown } = await ofBody(podOf('4'));
    assert.deepEqual(reservation, { kind: 'tentative', nodes: { n1: '1-2,9-10', odd: '' } });
    const cpusOf = Object.fromEntries(shown.map(({ node, cpus, inFlight }) => [node, [cpus, inFlight]]));
    assert.deepEqual(cpusOf, { n1: ['1-2,9-10', []], odd: ['', []] });
    const bound = withUid(podOf('2'), 'bound');
    see(onNode(bound, 'odd'));
    const [n1, odd] = (await ofBody(withUid(podOf('4'), 'next'))).nodes;
    assert.deepEqual(n1?.['inFlight'], [{ uid: 'pod-uid', kind: 'tentative', cpus: '1-2,9-10' }]);
    assert.deepEqual(odd?.['inFlight'], [
      { uid: 'pod-uid', kind: 'tentative', cpus: '' },
      { uid: 'bound', kind: 'bound', cpus: '' },
    ]);
    assert.deepEqual((await ofBody(bound)).reservation, { kind: 'bound', nodes: { odd: '' } });
  });
});
