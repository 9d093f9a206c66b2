import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type NodeRequirement, type SelectingSpec, selectsNode } from '../../../model/launcher/node-selection.ts';
import {
  askedMultiples,
  beforeSmtAffinity,
  smtAffinity,
  withAlternatives,
} from '../../../model/launcher/smt-affinity.ts';
import { kind } from '../admission/facts.ts';
import { need, selecting, term } from './selectors.ts';

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
    it(what, () => assert.deepEqual(smtAffinity({ cpus, candidates, reported }), expected));
  }
});

describe('affinity terms with one of two added requirements', () => {
  it('select exactly the nodes that were selected before and are not hopeless, and can be removed again', () => {
    const requirement = fc.constantFrom(zone, rack, need('zone', 'NotIn', 'a'));
    const field = fc.constantFrom(
      ...['In', 'NotIn'].flatMap((is) => ['n', 'm'].map((n) => need('metadata.name', is, n))),
    );
    const list = <T>(item: fc.Arbitrary<T>) => fc.option(fc.array(item, { maxLength: 2 }), { nil: undefined });
    const terms = fc.option(
      fc.array(fc.record({ matchExpressions: list(requirement), matchFields: list(field) }), { maxLength: 3 }),
      { nil: undefined },
    );
    const labels = fc.record(
      {
        zone: fc.constantFrom('a', 'b'),
        [THREADS]: fc.constantFrom('2', '4', '8'),
        [FULL]: fc.constantFrom('true', 'false'),
      },
      { requiredKeys: [] },
    );
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
