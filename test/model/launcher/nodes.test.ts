import assert from 'node:assert/strict';
import {
  filteringTaints,
  type NodeRequirement,
  type NodeTerm,
  requiredTerms,
  type SelectingSpec,
  selectionKey,
  selectsNode,
  toleratesAll,
} from '../../../model/launcher/node-selection.ts';
import {
  askedMultiples,
  beforeSmtAffinity,
  smtAffinity,
  withAlternatives,
} from '../../../model/launcher/smt-affinity.ts';
import { rejectionWarning, threadsWarning } from '../../../model/launcher/template.ts';
import { ANNOTATED, CPU, kind } from '../admission/facts.ts';

const LABELS: Readonly<Record<string, string>> = { zone: 'a', size: '10', empty: '' };
const NODE = { name: 'n1', label: (key: string) => LABELS[key] };
const selecting = (...terms: readonly NodeTerm[]): SelectingSpec => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
});
const term = (...matchExpressions: readonly NodeRequirement[]): NodeTerm => ({ matchExpressions });
const need = (key: string, operator: string, ...values: string[]): NodeRequirement => ({ key, operator, values });

describe('selection of a node by a pod', () => {
  const ZONE_A = need('zone', 'In', 'a', 'b');
  const ZONE_C = need('zone', 'In', 'c');
  const named = (key: string, ...values: string[]): NodeTerm => ({ matchFields: [need(key, 'In', ...values)] });
  const cases: readonly (readonly [string, SelectingSpec, boolean])[] = [
    ['no selector', {}, true],
    ['a matching label', { nodeSelector: { zone: 'a' } }, true],
    ['all labels match', { nodeSelector: { zone: 'a', size: '10' } }, true],
    ['one label of two matches', { nodeSelector: { zone: 'a', size: '11' } }, false],
    ['a missing label', { nodeSelector: { rack: 'a' } }, false],
    ['label and term match', { nodeSelector: { zone: 'b' }, ...selecting(term(ZONE_A)) }, false],
    ['no terms', selecting(), false],
    ['a term without requirements', selecting({}), false],
    ['a term of empty lists', selecting({ matchExpressions: [], matchFields: null }), false],
    ['In', selecting(term(ZONE_A)), true],
    ['In, another value', selecting(term(ZONE_C)), false],
    ['In, a missing label', selecting(term(need('rack', 'In', 'a'))), false],
    ['In, without values', selecting({ matchExpressions: [{ key: 'zone', operator: 'In' }] }), false],
    ['one term of two matches', selecting(term(ZONE_C), term(ZONE_A)), true],
    ['one requirement of two matches', selecting(term(ZONE_A, ZONE_C)), false],
    ['both requirements match', selecting(term(ZONE_A, need('size', 'Exists'))), true],
    ['NotIn', selecting(term(need('zone', 'NotIn', 'b'))), true],
    ['NotIn, its value', selecting(term(need('zone', 'NotIn', 'a'))), false],
    ['NotIn, a missing label', selecting(term(need('rack', 'NotIn', 'a'))), true],
    ['NotIn, without values', selecting({ matchExpressions: [{ key: 'zone', operator: 'NotIn' }] }), true],
    ['Exists', selecting(term(need('empty', 'Exists'))), true],
    ['Exists, a missing label', selecting(term(need('rack', 'Exists'))), false],
    ['DoesNotExist', selecting(term(need('rack', 'DoesNotExist'))), true],
    ['DoesNotExist, an existing label', selecting(term(need('empty', 'DoesNotExist'))), false],
    ['Gt', selecting(term(need('size', 'Gt', '9'))), true],
    ['Gt, equal', selecting(term(need('size', 'Gt', '10'))), false],
    ['Gt, above', selecting(term(need('size', 'Gt', '11'))), false],
    ['Lt', selecting(term(need('size', 'Lt', '11'))), true],
    ['Lt, equal', selecting(term(need('size', 'Lt', '10'))), false],
    ['Lt, below', selecting(term(need('size', 'Lt', '9'))), false],
    ['Lt, by value, not by text', selecting(term(need('size', 'Lt', '+9', '11'))), false],
    ['Gt, a label that is not a number', selecting(term(need('zone', 'Gt', '1'))), false],
    ['Gt, a bound that is not a number', selecting(term(need('size', 'Gt', 'x'))), false],
    ['Lt, a bound that is not a number', selecting(term(need('size', 'Lt', 'x'))), false],
    ['Gt, without a bound', selecting(term(need('size', 'Gt'))), false],
    ['Gt, a missing label', selecting(term(need('rack', 'Gt', '-1'))), false],
    ['an unknown operator', selecting(term(need('zone', 'Like', 'a'))), false],
    ['a matching name', selecting(named('metadata.name', 'n1')), true],
    ['another name', selecting(named('metadata.name', 'n2')), false],
    ['another field', selecting(named('metadata.uid', 'n1')), false],
    ['name and label match', selecting({ ...named('metadata.name', 'n1'), matchExpressions: [ZONE_C] }), false],
    [
      'a matching label and another name',
      selecting({ ...named('metadata.name', 'n2'), matchExpressions: [ZONE_A] }),
      false,
    ],
    [
      'one name in two fields',
      selecting({ matchFields: [need('metadata.name', 'In', 'n1'), need('metadata.name', 'In', 'n2')] }),
      false,
    ],
  ];
  for (const [what, spec, expected] of cases)
    it(`${what}: ${expected}`, () => assert.equal(selectsNode(spec, NODE), expected));

  it('uses the terms of the required affinity', () => {
    const required = (value: object | null) =>
      requiredTerms({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: value } } });
    assert.equal(requiredTerms({}), undefined);
    assert.equal(requiredTerms({ affinity: null }), undefined);
    assert.equal(required(null), undefined);
    assert.deepEqual(required({}), []);
    assert.deepEqual(required({ nodeSelectorTerms: [term(ZONE_A)] }), [term(ZONE_A)]);
  });

  it('has a key of selector, terms and tolerations', () => {
    assert.equal(selectionKey({}), '[{},null,[]]');
    assert.equal(selectionKey({ nodeSelector: null, tolerations: null }), '[{},null,[]]');
    const tolerations = [{ key: 'k' }];
    assert.equal(
      selectionKey({ nodeSelector: { a: 'b' }, tolerations, ...selecting({}) }),
      '[{"a":"b"},[{}],[{"key":"k"}]]',
    );
  });
});

describe('taints', () => {
  const taint = (key: string, effect = 'NoSchedule', value?: string) => ({ key, effect, ...(value && { value }) });
  const CORDON = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

  it('filter nodes with NoSchedule and NoExecute; a cordon is one of them', () => {
    assert.deepEqual(filteringTaints({}), []);
    assert.deepEqual(filteringTaints({ taints: null, unschedulable: false }), []);
    const taints = [taint('a'), taint('b', 'PreferNoSchedule'), taint('c', 'NoExecute')];
    assert.deepEqual(filteringTaints({ taints }), [taints[0], taints[2]]);
    assert.deepEqual(filteringTaints({ taints, unschedulable: true }), [CORDON, taints[0], taints[2]]);
    const cordoned = [taint('a'), { ...CORDON, value: 'v' }];
    assert.deepEqual(filteringTaints({ taints: cordoned, unschedulable: true }), cordoned);
  });

  it('are read up to 128', () => {
    const taints = Array.from({ length: 130 }, (_, i) => taint(`k${i}`));
    assert.deepEqual(filteringTaints({ taints }), taints.slice(0, 128));
    const tolerations = taints.map(({ key }) => ({ key, operator: 'Exists' }));
    assert.equal(toleratesAll(tolerations, taints.slice(0, 128)), true);
    assert.equal(toleratesAll(tolerations, taints.slice(0, 129)), false);
  });

  for (const [toleration, expected] of [
    [{ key: 'k', value: 'v' }, true],
    [{ key: 'k', value: 'v', operator: '' }, true],
    [{ key: 'k', value: 'v', operator: 'Equal' }, true],
    [{ key: 'k', value: 'v', operator: 'Like' }, false],
    [{ key: 'k', value: 'w' }, false],
    [{ key: 'k' }, false],
    [{ key: 'k', operator: 'Exists' }, true],
    [{ key: 'other', operator: 'Exists' }, false],
    [{ key: 'other', value: 'v' }, false],
    [{ operator: 'Exists' }, true],
    [{ key: '', operator: 'Exists' }, true],
    [{ key: null, value: 'v' }, false],
    [{ value: 'v' }, false],
    [{ key: 'k', value: 'v', effect: 'NoSchedule' }, true],
    [{ key: 'k', value: 'v', effect: '' }, true],
    [{ key: 'k', value: 'v', effect: null }, true],
    [{ key: 'k', value: 'v', effect: 'NoExecute' }, false],
    [{ operator: 'Exists', effect: 'NoExecute' }, false],
  ] as const) {
    it(`${JSON.stringify(toleration)} ${expected ? 'tolerates' : 'does not tolerate'} k=v:NoSchedule`, () =>
      assert.equal(toleratesAll([toleration], [taint('k', 'NoSchedule', 'v')]), expected));
  }

  it('without a value are tolerated by a toleration without one', () => {
    assert.equal(toleratesAll([{ key: 'k' }], [taint('k')]), true);
    assert.equal(toleratesAll([{ key: 'k', value: 'v' }], [taint('k')]), false);
    assert.equal(toleratesAll([{ key: 'k', value: null }], [{ ...taint('k'), value: null }]), true);
  });

  it('must each be tolerated by a toleration', () => {
    const [a, b] = [
      { key: 'a', operator: 'Exists' },
      { key: 'b', operator: 'Exists' },
    ];
    assert.equal(toleratesAll([a, b], [taint('a'), taint('b')]), true);
    assert.equal(toleratesAll([a], [taint('a'), taint('b')]), false);
    assert.equal(toleratesAll([], []), true);
    assert.equal(toleratesAll(null, []), true);
    assert.equal(toleratesAll(undefined, [taint('a')]), false);
  });
});

describe('required multiples of CPUs', () => {
  const lax = { ...kind(8), fullPcpusOnly: false };
  for (const [what, kinds, expected] of [
    ['are none without nodes', [], []],
    ['are one if no node requires whole cores', [lax], [1]],
    ['are those of the nodes that require whole cores', [kind(16), kind(2), lax, kind(4), kind(16)], [2, 4, 16]],
  ] as const) {
    it(what, () => assert.deepEqual(askedMultiples(kinds), expected));
  }
});

const [THREADS, FULL] = ['plumbline.dev/threads-per-core', 'plumbline.dev/full-pcpus-only'];
const away = (...threads: string[]) => [need(THREADS, 'NotIn', ...threads), need(FULL, 'NotIn', 'true')];

describe('the affinity that excludes nodes that would reject a pod’s CPUs', () => {
  const lax = { ...kind(4), fullPcpusOnly: false };
  for (const [what, cpus, candidates, reported, expected] of [
    ['is absent if all nodes accept them', [4, 8], [kind(2)], [kind(2), kind(4)], undefined],
    ['excludes a node that rejects them', [6], [kind(2)], [kind(2), kind(4)], away('4')],
    ['excludes a node that rejects one container of two', [8, 6], [kind(2)], [kind(2), kind(4)], away('4')],
    ['lists several nodes once, in order', [2], [kind(2)], [kind(16), kind(8), kind(4), kind(8)], away('4', '8', '16')],
    ['ignores nodes that assign threads', [6], [kind(2)], [lax], undefined],
    ['is absent if every candidate rejects them', [6], [kind(4), kind(8)], [kind(2), kind(4)], undefined],
    ['exists if one candidate accepts them', [6], [kind(4), lax], [kind(2), kind(4)], away('4')],
    ['is absent without candidates', [6], [], [kind(4)], undefined],
  ] as const) {
    it(what, () => assert.deepEqual(smtAffinity({ cpus, candidates, reported }), expected));
  }
});

describe('affinity terms with one of two added requirements', () => {
  const [first, second] = away('4') as [NodeRequirement, NodeRequirement];
  const zone = need('zone', 'In', 'a');
  const fields = [need('metadata.name', 'In', 'n1')];

  it('are the two requirements if there was no affinity', () =>
    assert.deepEqual(withAlternatives(undefined, [first, second]), [term(first), term(second)]));

  it('are two for each term', () => {
    assert.deepEqual(withAlternatives([term(zone), { matchFields: fields }], [first, second]), [
      term(zone, first),
      term(zone, second),
      { matchFields: fields, matchExpressions: [first] },
      { matchFields: fields, matchExpressions: [second] },
    ]);
    assert.deepEqual(withAlternatives([], [first, second]), []);
  });

  it('stay the same for a term that has one of them, or that matches nothing', () => {
    const terms = [term(zone, first), term(second), {}, { matchExpressions: [], matchFields: null }];
    assert.deepEqual(withAlternatives(terms, [first, second]), terms);
  });

  for (const other of [
    need(THREADS, 'NotIn', '8'),
    need(THREADS, 'In', '4'),
    need('x', 'NotIn', '4'),
    { key: THREADS, operator: 'NotIn' },
  ]) {
    it(`do not treat another requirement as one of them: ${JSON.stringify(other)}`, () =>
      assert.deepEqual(withAlternatives([term(other)], [first, second]), [term(other, first), term(other, second)]));
  }

  it('treat missing and empty values as the same', () => {
    const exists = { key: 'x', operator: 'Exists' };
    assert.deepEqual(withAlternatives([term(exists)], [{ ...exists, values: [] }]), [term(exists)]);
    assert.deepEqual(withAlternatives([term({ ...exists, values: [] })], [exists]), [term({ ...exists, values: [] })]);
  });
});

describe('a spec without the added requirements', () => {
  const [first, second] = away('4') as [NodeRequirement, NodeRequirement];
  const zone = need('zone', 'In', 'a');
  const rack = need('rack', 'Exists');
  const nodeSelector = { a: 'b' };
  const tolerations = [{ key: 'k' }];
  const fields = [need('metadata.name', 'In', 'n1')];

  it('is unchanged if none was added', () => {
    for (const spec of [
      {},
      { nodeSelector, tolerations },
      selecting(),
      selecting({}),
      selecting(term(zone), term(rack)),
      // One alone is the user's own.
      selecting(term(first)),
      selecting(term(first), term(zone, second)),
      selecting(term(first), term(need(FULL, 'NotIn', 'false'))),
      selecting(term(first), term(need(FULL, 'In', 'true'))),
      selecting(term(first), term({ key: FULL, operator: 'NotIn' })),
      selecting(term(first), term(first)),
      selecting(term(first), term(need('other', 'NotIn', 'true'))),
      selecting(term(first), { ...term(second), matchFields: fields }),
    ]) {
      assert.equal(beforeSmtAffinity(spec), spec, JSON.stringify(spec));
    }
  });

  it('has only its selector if there was no affinity', () => {
    const spec = { nodeSelector, tolerations, ...selecting(term(first), term(second)) };
    assert.deepEqual(beforeSmtAffinity(spec), { nodeSelector, tolerations });
  });

  it('has its own terms', () => {
    const spec = {
      nodeSelector,
      tolerations,
      ...selecting(
        term(zone, first),
        term(zone, second),
        { ...term(first), matchFields: fields },
        { ...term(second), matchFields: fields },
        term(rack),
      ),
    };
    const alone = { matchExpressions: [], matchFields: fields };
    assert.deepEqual(beforeSmtAffinity(spec), {
      nodeSelector,
      tolerations,
      ...selecting(term(zone), term(zone), alone, alone, term(rack)),
    });
  });

  it('keeps a term that matches nothing', () => {
    const spec = selecting(term(zone, first), term(zone, second), {});
    assert.deepEqual(beforeSmtAffinity(spec), {
      nodeSelector: undefined,
      tolerations: undefined,
      ...selecting(term(zone), term(zone), {}),
    });
  });

  it('equals the original for every pair of terms', () => {
    for (const terms of [[term(zone)], [term(zone), term(rack)], [term(zone, rack), { matchFields: fields }]]) {
      const before = selecting(...terms);
      const after = selecting(...withAlternatives(terms, [first, second]));
      const again = requiredTerms(beforeSmtAffinity(after)) ?? [];
      const doubled = terms.flatMap((one) => [one, one]);
      assert.deepEqual(
        again.map(({ matchExpressions, matchFields }) => [matchExpressions ?? [], matchFields ?? []]),
        doubled.map(({ matchExpressions, matchFields }) => [matchExpressions ?? [], matchFields ?? []]),
      );
      assert.equal(beforeSmtAffinity(before), before);
    }
  });
});

describe('the warning that nodes would reject the launcher of a VM', () => {
  const settings = { gate: true, policy: 'annotated' } as const;
  const lax = { ...kind(2), fullPcpusOnly: false };
  const template = (cpu: object = CPU, annotations = {}) => ({
    metadata: { annotations },
    spec: { domain: { cpu } },
    instancetype: false,
  });
  const ANNOTATE = 'annotate the template with kubevirt.io/CPUManagerPolicyBetaOptions: full-pcpus-only';
  const FILL = 'give it vCPUs that fill whole cores';
  const text = (total: number, where: string, threads: string, remedy: string) =>
    `the launcher asks for ${total === 1 ? '1 CPU' : `${total} CPUs`}: ${where} (${threads} threads per core) rejects it, SMTAlignmentError; ${remedy}`;
  const EVERY = 'every node it can go to';
  const SOME = 'every full-pcpus-only node';
  const notIsolated = { ...CPU, cores: 3, threads: 1, isolateEmulatorThread: false };

  for (const [what, one, kinds, its, expected] of [
    [
      'is given for an odd number without the annotation',
      template(),
      [kind(2)],
      settings,
      text(9, EVERY, '2', ANNOTATE),
    ],
    [
      'names only full-pcpus-only nodes if other nodes accept it',
      template(),
      [kind(4), lax, kind(2), kind(4)],
      settings,
      text(9, SOME, '2 or 4', ANNOTATE),
    ],
    ['is omitted if no node requires whole cores', template(), [lax], settings, undefined],
    ['is omitted without nodes', template(), [], settings, undefined],
    ['is omitted if a node with whole cores accepts it', template(), [kind(2), kind(3)], settings, undefined],
    ['annotated', template(CPU, ANNOTATED), [kind(2)], settings, undefined],
    ['is omitted if all VMs are aligned', template(), [kind(2)], { ...settings, policy: 'auto' }, undefined],
    [
      'advises to fill whole cores if the gate is off',
      template(CPU, ANNOTATED),
      [kind(2)],
      { ...settings, gate: false },
      text(9, EVERY, '2', FILL),
    ],
    [
      'advises to fill whole cores without an isolated emulator thread',
      template(notIsolated, ANNOTATED),
      [kind(2)],
      settings,
      text(3, EVERY, '2', FILL),
    ],
    ['is omitted on shared CPUs', template({ ...CPU, dedicatedCpuPlacement: false }), [kind(2)], settings, undefined],
    ['is omitted without a CPU topology', { ...template(), spec: { domain: {} } }, [kind(2)], settings, undefined],
    [
      'is omitted if an instancetype sets the CPUs',
      { ...template(), instancetype: true },
      [kind(2)],
      settings,
      undefined,
    ],
    [
      'is omitted for a size that no host has',
      template({ ...notIsolated, cores: 65_537 }),
      [kind(2)],
      settings,
      undefined,
    ],
    [
      'is given for the maximum size',
      template({ ...notIsolated, cores: 65_535 }),
      [kind(2)],
      settings,
      text(65_535, EVERY, '2', FILL),
    ],
    [
      'is given for the minimum size',
      template({ ...notIsolated, cores: 1 }),
      [kind(2)],
      settings,
      text(1, EVERY, '2', FILL),
    ],
    ['is omitted for a size below one', template({ ...notIsolated, cores: -1 }), [kind(2)], settings, undefined],
    [
      'is omitted just above the maximum size',
      template({ ...notIsolated, cores: 65_536 }),
      [kind(3)],
      settings,
      undefined,
    ],
  ] as const) {
    it(what, () => assert.equal(rejectionWarning(one, kinds, its), expected));
  }
});

describe('the warning for a guest with threads', () => {
  const template = (cpu: object) => ({ metadata: {}, spec: { domain: { cpu } }, instancetype: false });
  const threaded = { cores: 4, threads: 2, dedicatedCpuPlacement: true };
  for (const [what, one, kinds, isGiven] of [
    ['no node has SMT', template(threaded), [kind(1)], true],
    ['some node has SMT', template(threaded), [kind(1), kind(2)], false],
    ['no node is known', template(threaded), [], false],
    ['a guest without threads', template({ ...threaded, threads: 1 }), [kind(1)], false],
    ['a VM on shared CPUs', template({ ...threaded, dedicatedCpuPlacement: false }), [kind(1)], false],
    ['a VM with an instancetype', { ...template(threaded), instancetype: true }, [kind(1)], false],
  ] as const) {
    it(`${isGiven ? 'is given' : 'is omitted'}: ${what}`, () => {
      const text = threadsWarning(one, kinds) ?? '';
      assert.equal(/^no node that this VM may go to has SMT: its guest has 2 threads per core/.test(text), isGiven);
    });
  }
});
