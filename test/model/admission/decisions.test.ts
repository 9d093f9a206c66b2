import assert from 'node:assert/strict';
import { decide } from '../../../model/admission/decide.ts';
import type { Decision, LauncherFacts, PodFacts } from '../../../model/admission/facts.ts';
import { CPU_MASK_ANNOTATION, DECISION_ANNOTATION, PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import { NETWORKS_ANNOTATION } from '../../../model/networks/attachments.ts';
import { ALIGNED, ANNOTATED, CPU, cluster, container, found, kind, launcher, ordinary } from './facts.ts';

const EAST = 'physnet.plumbline.dev/east';
const PLACED = 'plumbline.dev/placed';
const OURS = { schedulerName: 'plumbline-scheduler', away: undefined };
const SHARED_CPU = { ...CPU, dedicatedCpuPlacement: false };
/** One kind of nodes that require whole cores, and one that assigns single threads. */
const MIXED = cluster([kind(2), { ...kind(2), fullPcpusOnly: false }]);

function changed(facts: PodFacts): Extract<Decision, { outcome: 'changed' }> {
  const decision = decide(facts);
  assert.ok(decision.outcome === 'changed', JSON.stringify(decision));
  return decision;
}

describe('the complete decision about a pod', () => {
  it('pads a launcher', () => {
    const text = '{"cpus":{"compute":10},"padding":1,"threadsPerCore":2}';
    assert.deepEqual(decide(launcher()), {
      outcome: 'changed',
      changes: {
        containers: [{ list: 'containers', index: 0, cpus: 10, resources: [] }],
        annotations: { [DECISION_ANNOTATION]: text, [PLACEMENT_ANNOTATION]: undefined },
        nodes: undefined,
        scheduler: undefined,
      },
      findings: [],
    });
  });

  it('gives an ordinary pod on a network its devices', () => {
    const annotations = { ...ALIGNED, [NETWORKS_ANNOTATION]: 'east' };
    const facts = ordinary({ annotations, containers: [container('a', '3'), container('b', '2')] });
    const decision = changed({ ...facts, scheduler: OURS });
    assert.deepEqual(decision.changes.containers, [
      { list: 'containers', index: 0, cpus: 4, resources: [PLACED, EAST] },
      { list: 'containers', index: 1, cpus: undefined, resources: [] },
    ]);
    assert.deepEqual([decision.findings, decision.changes.scheduler], [[], 'plumbline-scheduler']);
    assert.deepEqual(JSON.parse(decision.changes.annotations[DECISION_ANNOTATION] ?? ''), {
      cpus: { a: 4, b: 2 },
      padding: 0,
      threadsPerCore: 2,
      networks: [{ interface: 'net1', network: 'ns/east', on: 'physnet east' }],
      resources: [PLACED, EAST],
    });
  });

  it('is absent for an ordinary pod without CPUs of its own, but not for a launcher', () => {
    const left = changed(ordinary({ containers: [container('a', '500m')] }));
    assert.deepEqual(left.changes.annotations, {
      [DECISION_ANNOTATION]: undefined,
      [PLACEMENT_ANNOTATION]: undefined,
    });
    const shared = launcher({ annotations: {}, containers: [container('compute', '500m')] });
    const seen = changed({ ...shared, owner: found(cluster(), SHARED_CPU) });
    assert.deepEqual(
      [seen.changes.annotations[DECISION_ANNOTATION], seen.changes.containers[0]?.resources],
      ['{"padding":0}', []],
    );
  });

  it('excludes nodes only if Plumbline aligns the pod’s CPUs', () => {
    const nodeKinds = [kind(4)];
    const candidates = [{ ...kind(2), fullPcpusOnly: false }];
    const owner = found({ ...cluster(candidates), nodeKinds });
    const nodes = [
      { key: 'plumbline.dev/threads-per-core', operator: 'NotIn', values: ['4'] },
      { key: 'plumbline.dev/full-pcpus-only', operator: 'NotIn', values: ['true'] },
    ];
    assert.deepEqual(changed(launcher({}, { owner })).changes.nodes, nodes);
    const settings = { ...launcher().settings, gate: false };
    assert.equal(changed(launcher({}, { owner, settings })).changes.nodes, undefined);
    assert.deepEqual(
      changed(ordinary({}, { cluster: { ...cluster(candidates), nodeKinds } })).changes.nodes,
      undefined,
    );
    const six = ordinary({ containers: [container('a', '6')] }, { cluster: { ...cluster(candidates), nodeKinds } });
    assert.deepEqual(changed(six).changes.nodes, nodes);
  });
});

describe('a launcher that is admitted unchanged', () => {
  const gone = (facts: Partial<LauncherFacts>, annotations: Record<string, string> = ANNOTATED) =>
    decide(launcher({ annotations }, facts));
  const LEFT = ', so the webhook leaves this launcher unchanged';
  const warning = (message: string) => ({
    outcome: 'unchanged',
    findings: [{ severity: 'warning', code: 'vmi-gone', message: message + LEFT }],
  });

  it('warns an owner who requested something, and no one else', () => {
    const name = 'VirtualMachineInstance ns/vm';
    assert.deepEqual(gone({ owner: { kind: 'absent' } }), warning(`${name} does not exist`));
    assert.deepEqual(
      gone({ owner: { kind: 'replaced', uid: 'u2' } }),
      warning(`${name} was re-created (uid u2, this launcher belongs to u1)`),
    );
    assert.deepEqual(gone({ owner: { kind: 'absent' } }, {}), { outcome: 'unchanged', findings: [] });
    const { pod } = launcher();
    assert.deepEqual(decide({ kind: 'other', pod }), { outcome: 'unchanged', findings: [] });
  });
});

describe('a pod that is refused immediately', () => {
  for (const [what, facts, code, reason, finding] of [
    ['is not a Pod', { kind: 'unreadable', why: 'no Pod' }, 400, 'no Pod', 'no-pod'],
    [
      'is a launcher with an unreadable VMI',
      launcher({}, { owner: { kind: 'unreadable', why: 'timeout' } }),
      503,
      'VirtualMachineInstance ns/vm could not be read (timeout); try again',
      'vmi-unreadable',
    ],
    ['is an unreadable launcher', launcher({}, { owner: { kind: 'malformed', why: 'bad' } }), 400, 'bad', 'malformed'],
    [
      'has a device of Plumbline',
      { kind: 'other', pod: ordinary({ annotations: { [DECISION_ANNOTATION]: '{}' } }).pod },
      403,
      `the pod has the annotation ${DECISION_ANNOTATION}, which only Plumbline may set; remove it`,
      'reserved',
    ],
  ] as const) {
    it(what, () =>
      assert.deepEqual(decide(facts), {
        outcome: 'refused',
        code,
        reason,
        findings: [{ severity: 'error', code: finding, message: reason, status: code }],
      }),
    );
  }

  it('is not the result of a bug of the program', () =>
    assert.throws(() => decide({ kind: 'ordinary' } as PodFacts), TypeError));
});

describe('a launcher with a CPU mask', () => {
  const masked = (mask: string, cpu: string, limit: string, more: Partial<LauncherFacts> = {}) => {
    const pod = { annotations: { [CPU_MASK_ANNOTATION]: mask }, containers: [container('compute', cpu, limit)] };
    const decision = decide(launcher(pod, { owner: found(MIXED, { cores: 2 }), ...more }));
    return decision.findings.map(({ severity, code, message }) => `${severity} ${code}: ${message}`);
  };

  it('is admitted on shared CPUs', () => assert.deepEqual(masked('1:2', '200m', '1'), []));

  it('is refused if the mask has another number of vCPUs, unless more may be plugged in', () => {
    const refusal = masked('1:2:3', '200m', '1');
    assert.equal(refusal.length, 1);
    assert.match(refusal[0]!, /^error cpu-mask: annotation plumbline\.dev\/cpu-mask: /);
    assert.deepEqual(masked('1:2:3', '200m', '1', { purpose: 'migration-target' }), []);
    assert.equal(masked('1:2:3', '200m', '1', { purpose: 'provisioning' }).length, 1);
  });

  it('is refused if the kubelet would give it CPUs of its own', () => {
    const refusal = masked('1:2', '2', '2');
    assert.equal(refusal.length, 1);
    assert.match(refusal[0]!, /^error cpu-mask: .* are equal and whole CPUs/);
    // The first of the two faults is enough.
    assert.equal(masked('1:2:3', '2', '2').length, 1);
    assert.doesNotMatch(masked('1:2:3', '2', '2')[0]!, /whole CPUs/);
  });
});
