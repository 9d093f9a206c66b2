import assert from 'node:assert/strict';
import { decide } from '../../model/admission/decide.ts';
import type { Decision, LauncherFacts, PodChange, PodFacts } from '../../model/admission/facts.ts';
import { schedulerWarnings, schedulingOf } from '../../model/admission/scheduling.ts';
import { CPU_MASK_ANNOTATION, DECISION_ANNOTATION, PLACEMENT_ANNOTATION } from '../../model/names.ts';
import { NETWORKS_ANNOTATION } from '../../model/networks/attachments.ts';
import type { PodShape } from '../../model/shapes.ts';
import {
  ALIGNED,
  ANNOTATED,
  brief,
  CPU,
  cluster,
  container,
  found,
  kind,
  launcher,
  ordinary,
} from './admission/fixture.ts';

const EAST = { [NETWORKS_ANNOTATION]: 'east' };
/** A launcher that asks for whole cores and has these annotations. */
const annotated = (more: Record<string, string>) => ({ annotations: { ...ANNOTATED, ...more } });
const PHYSNET = 'physnet.plumbline.dev/east';
const PLACED = 'plumbline.dev/placed';
const compute = (more?: Record<string, string>) => container('compute', '9', '9', more);
const scheduler = (away?: string) => ({ schedulerName: 'plumbline-scheduler', away });
const GONE = launcher({ annotations: {} }, { owner: { kind: 'absent' } });
/** A launcher with a mask, of a VM with two vCPUs. */
function masked(mask: string, cpu: string, limit: string, more: Partial<LauncherFacts> = {}): PodFacts {
  const pod = { annotations: { [CPU_MASK_ANNOTATION]: mask }, containers: [container('compute', cpu, limit)] };
  return launcher(pod, { owner: found(cluster(), { cores: 2 }), ...more });
}
/** The decision for a pod in one line: its outcome, and the CPUs and devices of each container. */
function outcomeOf(decision: Decision): string {
  if (decision.outcome === 'refused') return `refused ${decision.code}`;
  if (decision.outcome === 'unchanged') return 'unchanged';
  const { containers, nodes, scheduler: set } = decision.changes;
  const parts = containers.map(({ index, cpus, resources }) =>
    [`[${index}]`, cpus ?? 'as it is', ...resources].join(' '),
  );
  return [...parts, ...(nodes ? ['held to nodes'] : []), ...(set ? [`on ${set}`] : [])].join(', ') || 'nothing';
}
/** The changes of a pod that is admitted changed. */
function changesFor(facts: PodFacts): PodChange {
  const decision = decide(facts);
  assert.ok(decision.outcome === 'changed', JSON.stringify(decision));
  return decision.changes;
}
const SMT2 = '[0] 10';
/** A launcher on the network east whose pod can run on these kinds of nodes. */
const onEast = (room: number, more: Parameters<typeof cluster>[1] = {}) =>
  launcher(annotated(EAST), { owner: found(cluster([kind(2, room)], more)) });
const owned = (owner: LauncherFacts['owner'], annotations = {}) => launcher(annotated(annotations), { owner });
const other = (annotations: Record<string, string>): PodFacts => ({
  kind: 'other',
  pod: ordinary({ annotations }).pod,
});
const DECIDED = { [DECISION_ANNOTATION]: '{}' };
const mesh = container('mesh', '100m', '200m');
const OWN_DEVICE = { containers: [compute(), mesh, container('side', '1', '1', { 'physnet.plumbline.dev/a': '1' })] };
const VOLCANO = { containers: [compute(), container('side', '1'), mesh], schedulerName: 'volcano' };
const TWO = { annotations: { ...ALIGNED, ...EAST }, containers: [container('a', '2'), container('b', '3')] };
const CASES: [what: string, facts: PodFacts, decision: string][] = [
  ['a launcher on a network', launcher(annotated(EAST)), `${SMT2} ${PHYSNET}`],
  ['an ordinary pod', ordinary(), `[0] 4 ${PLACED}`],
  ['an ordinary pod on a network', ordinary(TWO), `[0] as it is ${PLACED} ${PHYSNET}, [1] 4`],
  ['a pod of another owner', other({}), 'unchanged'],
  ['a launcher for Plumbline’s scheduler', launcher({}, { scheduler: scheduler() }), `${SMT2}, on plumbline-scheduler`],
  [
    'too large, while a node has not reported',
    onEast(6, { allReport: false }),
    `${SMT2} ${PHYSNET}; warning larger-than-cells`,
  ],
  ['a VMI that does not exist, of a launcher that asks for nothing', GONE, 'unchanged'],
  ['a decision on a launcher without a VMI', owned({ kind: 'absent' }, DECIDED), 'refused 403; error reserved'],
  ['an object that is not a Pod', { kind: 'unreadable', why: 'this is no Pod' }, 'refused 400; error no-pod'],
  ['an unreadable amount', { kind: 'malformed', why: 'bad' }, 'refused 400; error malformed'],
  ['a malformed launcher', owned({ kind: 'malformed', why: 'bad' }), 'refused 400; error malformed'],
  ['an unreadable VMI', owned({ kind: 'unreadable', why: 'timeout' }), 'refused 503; error vmi-unreadable'],
  [
    'a container that makes a pod lose its CPUs',
    ordinary({ containers: [container('a', '3'), mesh] }),
    'refused 422; error not-guaranteed',
  ],
  ['too large for every node', onEast(6), 'refused 422; error larger-than-cells'],
  ['a decision on a pod of another owner', other(DECIDED), 'refused 403; error reserved'],
  ['a mask of all CPUs on CPUs of its own', masked('all', '2', '2'), '[0] as it is'],
  ['a mask after a hotplug', masked('1:2:3', '200m', '1', { purpose: 'migration-target' }), '[0] as it is'],
  ['a mask with more entries than vCPUs', masked('0:1:2', '200m', '1'), 'refused 422; error cpu-mask'],
  ['a mask on CPUs of its own', masked('1:2', '2', '2'), 'refused 422; error cpu-mask'],
  [
    'two errors: a container that costs the CPUs, and a device that only Plumbline may request',
    launcher(OWN_DEVICE),
    'refused 422; error not-guaranteed; error reserved; warning misaligned-container',
  ],
  [
    'several findings, errors first and the scheduler last',
    launcher(VOLCANO, { owner: found(cluster([kind(2), kind(4)])), scheduler: scheduler() }),
    'refused 422; error not-guaranteed; warning misaligned-container; information mixed-candidates; warning other-scheduler',
  ],
];
describe('the decision about a pod', () => {
  for (const [what, facts, expected] of CASES) {
    it(`${what}: ${expected}`, () => {
      const decision = decide(facts);
      assert.equal([outcomeOf(decision), ...decision.findings.map(brief)].join('; '), expected);
      // A pod is refused if and only if there is an error, with all of them.
      const errors = decision.findings.filter(({ severity }) => severity === 'error');
      const reason = errors.length === 0 ? undefined : errors.map(({ message }) => message).join('; ');
      assert.equal(decision.outcome === 'refused' ? decision.reason : undefined, reason);
    });
  }

  it('writes the annotations of a launcher and removes others', () => {
    const { annotations } = changesFor(launcher(annotated(EAST)));
    const { [DECISION_ANNOTATION]: text, [PLACEMENT_ANNOTATION]: placement } = annotations;
    assert.deepEqual(JSON.parse(text ?? ''), {
      cpus: { compute: 10 },
      padding: 1,
      threadsPerCore: 2,
      networks: [{ interface: 'net1', network: 'ns/east', on: 'physnet east' }],
      resources: [PHYSNET],
    });
    assert.deepEqual(JSON.parse(placement ?? ''), { interfaces: { [PHYSNET]: 'net1' } });
    const seen = { [DECISION_ANNOTATION]: '{"padding":0}', [PLACEMENT_ANNOTATION]: undefined };
    assert.deepEqual(changesFor(launcher({}, { owner: { kind: 'not-asked' } })).annotations, seen);
    const shared = launcher({ annotations: {}, containers: [container('compute', '500m')] });
    const owner = found(cluster(), { ...CPU, dedicatedCpuPlacement: false });
    assert.deepEqual(changesFor({ ...shared, owner }).annotations, seen);
  });

  it('excludes nodes only if Plumbline aligns the pod’s CPUs', () => {
    const kinds = cluster([{ ...kind(2), fullPcpusOnly: false }], { nodeKinds: [kind(4)] });
    const nodes = [
      { key: 'plumbline.dev/threads-per-core', operator: 'NotIn', values: ['4'] },
      { key: 'plumbline.dev/full-pcpus-only', operator: 'NotIn', values: ['true'] },
    ];
    const owner = found(kinds);
    assert.deepEqual(changesFor(launcher({}, { owner })).nodes, nodes);
    const settings = { ...launcher().settings, gate: false };
    assert.equal(changesFor(launcher({}, { owner, settings })).nodes, undefined);
    assert.equal(changesFor(ordinary({}, { cluster: kinds })).nodes, undefined);
    assert.deepEqual(changesFor(ordinary({ containers: [container('a', '6')] }, { cluster: kinds })).nodes, nodes);
  });

  for (const [title, kinds, placement] of [
    ['nodes with and without SMT', [kind(2), kind(1)], '{"guestThreads":2}'],
    ['nodes with SMT only', [kind(2)], undefined],
  ] as const) {
    it(`records the guest’s threads for a choice: ${title}`, () => {
      const { annotations } = changesFor(launcher({}, { owner: found(cluster(kinds)) }));
      assert.equal(annotations[PLACEMENT_ANNOTATION], placement);
    });
  }

  it('records its findings in the decision, except that the scheduler does not work at present', () => {
    const owner = found(cluster([kind(2), kind(4)], { nodeKinds: [kind(2), kind(4), kind(8)] }));
    const networks = annotated({ [NETWORKS_ANNOTATION]: 'east,west' });
    const decision = decide(launcher(networks, { owner, scheduler: scheduler('no replica leads') }));
    assert.ok(decision.outcome === 'changed');
    const { notes } = JSON.parse(decision.changes.annotations[DECISION_ANNOTATION] ?? '');
    const lines = notes.map(({ type, reason }: Record<string, string>) => `${type} ${reason}`);
    assert.deepEqual(lines, ['Normal MixedCandidates', 'Warning LauncherNotAligned']);
    assert.ok(decision.findings.some(({ code }) => code === 'scheduler-not-ready'));
  });

  it('gives the devices of an ordinary pod to its first lasting container, not to an init container', () => {
    const pod = { annotations: { ...ALIGNED, ...EAST }, initContainers: [container('setup', '2')] };
    const facts = ordinary({ ...pod, containers: [container('log', '100m'), container('a', '2')] });
    const lines = changesFor(facts).containers.map(({ list, index, resources }) => `${list} ${index}: ${resources}`);
    assert.deepEqual(lines, ['initContainers 0: ', `containers 1: ${PLACED},${PHYSNET}`]);
  });

  it('is no refusal after a bug of the program', () =>
    assert.throws(() => decide({ kind: 'ordinary' } as PodFacts), TypeError));
});
describe('Plumbline’s own resources on a pod', () => {
  const YOURS = ', which only Plumbline may set; remove it';
  const refusal = (name: string, resource: string, amount = '1') =>
    `container ${name} asks for ${resource}: ${amount}${YOURS}`;
  const requesting = (spec: PodShape['spec']): PodFacts => ({ kind: 'other', pod: { metadata: {}, spec } });
  const onEastWith = (containers: Parameters<typeof launcher>[0]) => launcher({ ...annotated(EAST), ...containers });
  const reasonFor = (facts: PodFacts) => {
    const decision = decide(facts);
    return decision.outcome === 'refused' ? decision.reason : undefined;
  };

  for (const resource of ['plumbline.dev/tunnel', PLACED, PHYSNET]) {
    it(`${resource} is refused if Plumbline did not set it`, () => {
      const limits = { cpu: '1', 'nvidia.com/gpu': '1', [resource]: '1', 'plumbline.dev/placed': '1' };
      assert.equal(
        reasonFor(requesting({ containers: [{ name: 'a' }, { name: 'c', resources: { limits } }] })),
        refusal('c', resource),
      );
    });
  }

  const requests = { [PHYSNET]: '1' };
  for (const [what, facts, expected] of [
    ['once, in its container', onEastWith({ containers: [compute({ [PHYSNET]: '1' })] }), undefined],
    ['twice', onEastWith({ containers: [compute({ [PHYSNET]: '2' })] }), refusal('compute', PHYSNET, '2')],
    [
      'in an init container',
      onEastWith({ initContainers: [container('c', '1', '1', requests)] }),
      refusal('c', PHYSNET),
    ],
    [
      'as a request without a limit',
      requesting({ containers: [{ name: 'c', resources: { requests } }] }),
      refusal('c', PHYSNET),
    ],
  ] as const) {
    it(`${what}: ${expected === undefined ? 'allowed' : 'refused'}`, () => assert.equal(reasonFor(facts), expected));
  }

  it('annotations are refused on a pod without a decision', () => {
    assert.equal(reasonFor(other({ another: '' })), undefined);
    for (const name of [DECISION_ANNOTATION, PLACEMENT_ANNOTATION]) {
      assert.equal(reasonFor(other({ [name]: '' })), `the pod has the annotation ${name}${YOURS}`);
    }
  });
});

const OURS = 'plumbline-scheduler';
const ready = { schedulerName: OURS, away: undefined };
const away = { schedulerName: OURS, away: 'no replica leads' };
const unused = { schedulerName: '', away: 'no replica leads' };
describe('the scheduler of a pod', () => {
  for (const [what, own, facts, set, reasons] of [
    ['the default', 'default-scheduler', ready, OURS, []],
    ['Plumbline’s, which does not work', OURS, away, undefined, ['SchedulerNotReady']],
    ['the default, and Plumbline’s does not work', 'default-scheduler', away, OURS, ['SchedulerNotReady']],
    ['another one', 'volcano', away, undefined, ['OtherScheduler']],
    ['none, and Plumbline’s is not used', undefined, unused, undefined, []],
  ] as const) {
    it(`${what}: ${set === undefined ? 'stays' : 'is replaced'}`, () => {
      const scheduling = schedulingOf(own, facts);
      assert.deepEqual([scheduling.set, scheduling.findings.map(({ reason }) => reason)], [set, reasons]);
    });
  }

  it('causes a warning if a template names another one', () => {
    assert.deepEqual(schedulerWarnings('volcano', OURS), [
      'spec.schedulerName: "volcano" does not check kubelets, networks and DPUs unless it asks Plumbline\'s extender; remove it for plumbline-scheduler',
    ]);
    assert.deepEqual([...schedulerWarnings('volcano', ''), ...schedulerWarnings(OURS, OURS)], []);
    assert.deepEqual(schedulerWarnings(undefined, OURS), []);
  });
});
