import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  filteringTaints,
  type NodeRequirement,
  type NodeTerm,
  requiredTerms,
  type SelectingSpec,
  selectsNode,
  toleratesAll,
} from '../../../model/launcher/node-selection.ts';
import {
  askedMultiples,
  beforeSmtAffinity,
  smtAffinity,
  withAlternatives,
} from '../../../model/launcher/smt-affinity.ts';
import { kind } from '../admission/fixture.ts';

const need = (key: string, operator: string, ...values: string[]): NodeRequirement => ({ key, operator, values });

const term = (...matchExpressions: readonly NodeRequirement[]): NodeTerm => ({ matchExpressions });
const selecting = (...terms: readonly NodeTerm[]): SelectingSpec => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
});

const [THREADS, FULL] = ['plumbline.dev/threads-per-core', 'plumbline.dev/full-pcpus-only'];
const away = (...threads: string[]): [NodeRequirement, NodeRequirement] => [
  need(THREADS, 'NotIn', ...threads),
  need(FULL, 'NotIn', 'true'),
];
const [first, second] = away('4');
const zone = need('zone', 'In', 'a');
const rack = need('rack', 'Exists');
const fields = [need('metadata.name', 'In', 'n1')];
/** A node that assigns single threads. */
const lax = { ...kind(4), fullPcpusOnly: false };
describe('required multiples of CPUs', () => {
  for (const [what, kinds, expected] of [
    ['are one if no node requires whole cores', [lax], [1]],
    ['are those of the nodes that require whole cores', [kind(16), kind(2), lax, kind(8), kind(16)], [2, 8, 16]],
  ] as const) {
    it(what, () => assert.deepEqual(askedMultiples(kinds), expected));
  }
});
describe('the affinity that excludes nodes that would reject a pod’s CPUs', () => {
  for (const [what, cpus, candidates, reported, expected] of [
    ['excludes nodes that reject them', [6], [kind(2)], [kind(8), kind(2), kind(4)], away('4', '8')],
    ['ignores nodes that assign threads', [6], [kind(2)], [lax], undefined],
    ['is absent if every candidate rejects them', [6], [kind(4), kind(8)], [kind(2), kind(4)], undefined],
    ['exists if one candidate accepts them', [6], [kind(4), lax], [kind(2), kind(4)], away('4')],
  ] as const) {
    it(what, () => assert.deepEqual(smtAffinity(cpus, candidates, reported), expected));
  }
});
describe('affinity terms with one of two added requirements', () => {
  it('select exactly the nodes that were selected before and are not hopeless, and can be removed again', () => {
    const requirement = fc.constantFrom(zone, rack, need('zone', 'NotIn', 'a'), need(THREADS, 'NotIn', '2'));
    const field = fc.constantFrom(
      ...['In', 'NotIn'].flatMap((is) => ['n', 'm'].map((n) => need('metadata.name', is, n))),
    );
    const list = <T>(item: fc.Arbitrary<T>) => fc.option(fc.array(item, { maxLength: 2 }), { nil: undefined });
    const terms = fc.option(
      fc.array(fc.record({ matchExpressions: list(requirement), matchFields: list(field) }), { maxLength: 3 }),
      { nil: undefined },
    );
    const values = { zone: ['a', 'b'], [THREADS!]: ['2', '4', '8'], [FULL!]: ['true', 'false'] };
    const all = Object.entries(values).map(([label, of]) => [label, fc.constantFrom(...of)] as const);
    const labels = fc.record(Object.fromEntries(all), { requiredKeys: [] });
    fc.assert(
      fc.property(terms, labels, (before, some) => {
        const chosen: Readonly<Record<string, string | undefined>> = some;
        const node = { name: 'n', label: (key: string) => chosen[key] };
        const after = withAlternatives(before, away('4', '8'));
        const isHopeless = ['4', '8'].includes(chosen[THREADS] ?? '') && chosen[FULL] === 'true';
        const isSelected = selectsNode(before === undefined ? {} : selecting(...before), node);
        assert.equal(selectsNode(selecting(...after), node), isSelected && !isHopeless);
        assert.equal(selectsNode(beforeSmtAffinity(selecting(...after)), node), isSelected);
        assert.deepEqual(withAlternatives(after, away('4', '8')), after);
      }),
      { numRuns: 3000 },
    );
  });

  it('stay the same for a term that has one of them, or that matches nothing', () => {
    const terms = [term(zone, first), term(second), {}, { matchExpressions: [], matchFields: null }];
    assert.deepEqual(withAlternatives(terms, [first, second]), terms);
  });
});
describe('a spec without the added requirements', () => {
  const nodeSelector = { a: 'b' };
  const tolerations = [{ key: 'k' }];

  const unchanged: readonly (readonly [string, SelectingSpec])[] = [
    ['no affinity', { nodeSelector, tolerations }],
    ['a term that matches nothing', selecting({})],
    ['one requirement alone, which is the user’s own', selecting(term(first))],
    ['the two with different fields', selecting(term(first), { ...term(second), matchFields: fields })],
  ];
  for (const [what, spec] of unchanged) it(`is unchanged: ${what}`, () => assert.equal(beforeSmtAffinity(spec), spec));

  it('has its own terms, also one that matches nothing', () => {
    const terms = [term(zone, first), term(zone, second), term(rack), {}];
    assert.deepEqual(beforeSmtAffinity({ nodeSelector, tolerations, ...selecting(...terms) }), {
      nodeSelector,
      tolerations,
      ...selecting(term(zone), term(zone), term(rack), {}),
    });
  });
});

const LABELS: Readonly<Record<string, string>> = { zone: 'a', size: '10', empty: '' };
const NODE = { name: 'n1', label: (key: string) => LABELS[key] };
const ZONE_A = need('zone', 'In', 'a', 'b');
const ZONE_C = need('zone', 'In', 'c');
describe('selection of a node by a pod', () => {
  const n1 = need('metadata.name', 'In', 'n1');
  const n2 = need('metadata.name', 'In', 'n2');
  const cases: readonly (readonly [string, SelectingSpec, boolean])[] = [
    ['all labels match', { nodeSelector: { zone: 'a', size: '10' } }, true],
    ['a term matches, a label does not', { nodeSelector: { zone: 'b' }, ...selecting(term(ZONE_A)) }, false],
    ['a term without requirements', selecting({}), false],
    ['one term of two matches', selecting(term(ZONE_C), term(ZONE_A)), true],
    ['NotIn, its value', selecting(term(need('zone', 'NotIn', 'a'))), false],
    ['NotIn, a missing label', selecting(term(need('rack', 'NotIn', 'a'))), true],
    ['DoesNotExist, an existing label', selecting(term(need('empty', 'DoesNotExist'))), false],
    ['Lt', selecting(term(need('size', 'Lt', '11'))), true],
    ['Lt, by value, not by text', selecting(term(need('size', 'Lt', '+9', '11'))), false],
    ['Gt, a label that is not a number', selecting(term(need('zone', 'Gt', '1'))), false],
    ['an unknown operator', selecting(term(need('zone', 'Like', 'a'))), false],
    ['another name', selecting({ matchFields: [n2] }), false],
    ['a matching name and another label', selecting({ matchFields: [n1], matchExpressions: [ZONE_C] }), false],
  ];
  for (const [what, spec, expected] of cases)
    it(`${what}: ${expected}`, () => assert.equal(selectsNode(spec, NODE), expected));

  it('uses the terms of the required affinity', () => {
    const required = (value: object | null) =>
      requiredTerms({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: value } } });
    assert.equal(requiredTerms({ affinity: null }), undefined);
    assert.equal(required(null), undefined);
    assert.deepEqual(required({}), []);
    assert.deepEqual(required({ nodeSelectorTerms: [term(ZONE_A)] }), [term(ZONE_A)]);
  });
});
describe('taints', () => {
  const taint = (key: string, effect = 'NoSchedule', value?: string) => ({ key, effect, ...(value && { value }) });
  const CORDON = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

  it('filter nodes with NoSchedule and NoExecute; a cordon is one of them', () => {
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

  for (const [what, toleration, expected] of [
    ['an empty operator', { key: 'k', value: 'v', operator: '' }, true],
    ['an unknown operator', { key: 'k', value: 'v', operator: 'Like' }, false],
    ['no value', { key: 'k' }, false],
    ['Exists, another key', { key: 'other', operator: 'Exists' }, false],
    ['Exists for every key', { operator: 'Exists' }, true],
    ['a value without a key', { key: null, value: 'v' }, false],
    ['an empty effect', { key: 'k', value: 'v', effect: '' }, true],
    ['another effect', { operator: 'Exists', effect: 'NoExecute' }, false],
  ] as const)
    it(`k=v:NoSchedule is ${expected ? '' : 'not '}tolerated by ${what}`, () =>
      assert.equal(toleratesAll([toleration], [taint('k', 'NoSchedule', 'v')]), expected));

  it('must each be tolerated by a toleration', () => {
    const [a, b] = ['a', 'b'].map((key) => ({ key, operator: 'Exists' }));
    assert.equal(toleratesAll([a!, b!], [taint('a'), taint('b')]), true);
    assert.equal(toleratesAll([a!], [taint('a'), taint('b')]), false);
    assert.equal(toleratesAll(null, []), true);
    assert.equal(toleratesAll(undefined, [taint('a')]), false);
  });
});
