import assert from 'node:assert/strict';
import { ArgsError, schedulingPod, softTopologyKeys, waitsToBind } from '../../../scheduler-plugin/extender/args.ts';
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
    assert.deepEqual(
      answer({ Pod: podOf('4'), NodeNameToMetaVictims: { x: {}, y: { ...victims('a'), NumPDBViolations: 3 } } }),
      {
        x: victims(),
        y: { ...victims('a'), NumPDBViolations: 3 },
      },
    );
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
describe('the topology keys of soft constraints', () => {
  const CASES: readonly [string, object, readonly string[]][] = [
    ['null', { affinity: null, topologySpreadConstraints: null }, []],
    [
      'a spread that may be violated, and one that may not',
      {
        topologySpreadConstraints: [
          { topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' },
          { topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' },
        ],
      },
      ['zone'],
    ],
    [
      'preferred nodes, by several labels, by none and by null',
      {
        affinity: {
          nodeAffinity: {
            [PREFERRED]: [
              nodeTerm('a', 'b'),
              { weight: 1, preference: {} },
              { weight: 1, preference: { matchExpressions: null } },
            ],
          },
        },
      },
      ['a', 'b'],
    ],
    [
      'each key once, and at most four, spreads first',
      {
        topologySpreadConstraints: [{ topologyKey: 'one', whenUnsatisfiable: 'ScheduleAnyway' }],
        affinity: {
          podAffinity: { [PREFERRED]: [podTerm('two'), podTerm('one')] },
          podAntiAffinity: { [PREFERRED]: [podTerm('three')] },
          nodeAffinity: { [PREFERRED]: [nodeTerm('four', 'five')] },
        },
      },
      ['one', 'two', 'three', 'four'],
    ],
    ['constraints in an unknown form', { topologySpreadConstraints: [7], affinity: { podAffinity: 7 } }, []],
  ];
  for (const [what, spec, keys] of CASES) {
    it(`${what}: ${keys.join() || 'none'}`, () => assert.deepEqual(softTopologyKeys(pod(spec)), keys));
  }
});
describe('a pod that the scheduler may bind later', () => {
  const CASES: readonly [string, object, boolean][] = [
    ['null', { volumes: null, resourceClaims: null }, false],
    [
      'a claim among other volumes',
      { volumes: [{ emptyDir: {} }, { persistentVolumeClaim: { claimName: 'c' } }] },
      true,
    ],
    ['a resource claim', { resourceClaims: [{ name: 'gpu' }] }, true],
    ['volumes in an unknown form', { volumes: 7, resourceClaims: 7 }, false],
  ];
  for (const [what, spec, waits] of CASES) {
    it(`${what}: ${waits ? 'yes' : 'no'}`, () => assert.equal(waitsToBind(pod(spec)), waits));
  }
});
