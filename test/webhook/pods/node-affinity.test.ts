import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type NodeTerm, type SelectingSpec, selectsNode } from '../../../model/launcher/node-selection.ts';
import { beforeSmtAffinity, smtAffinity, withAlternatives } from '../../../model/launcher/smt-affinity.ts';
import { FULL_PCPUS_LABEL, THREADS_PER_CORE_LABEL } from '../../../model/names.ts';
import { kindOf, mutationOf, patched, patchOf, podVector, requestFor, viewOf } from '../launcher-fixture.ts';

const node = (labels: Record<string, string>, name = 'n') => ({ name, label: (key: string) => labels[key] });
const required = (nodeSelectorTerms: NodeTerm[]): SelectingSpec => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});

describe('the nodes that a pod may use', () => {
  const labels = { zone: 'a', cores: '8', empty: '' };
  const cases: [what: string, spec: SelectingSpec, expected: boolean][] = [
    ['no constraint', {}, true],
    ['a selector that matches', { nodeSelector: { zone: 'a' } }, true],
    ['a selector that does not match', { nodeSelector: { zone: 'b' } }, false],
    ['a selector with the empty value', { nodeSelector: { empty: '' } }, true],
    ['a selector with the empty value on an absent label', { nodeSelector: { absent: '' } }, false],
    ['In', required([{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['b', 'a'] }] }]), true],
    ['NotIn', required([{ matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }]), false],
    [
      'NotIn of an absent label',
      required([{ matchExpressions: [{ key: 'x', operator: 'NotIn', values: ['a'] }] }]),
      true,
    ],
    ['Exists', required([{ matchExpressions: [{ key: 'empty', operator: 'Exists' }] }]), true],
    ['DoesNotExist', required([{ matchExpressions: [{ key: 'zone', operator: 'DoesNotExist' }] }]), false],
    ['Gt', required([{ matchExpressions: [{ key: 'cores', operator: 'Gt', values: ['7'] }] }]), true],
    ['Lt', required([{ matchExpressions: [{ key: 'cores', operator: 'Lt', values: ['8'] }] }]), false],
    [
      'Gt of a label that is not a number',
      required([{ matchExpressions: [{ key: 'zone', operator: 'Gt', values: ['1'] }] }]),
      false,
    ],
    ['a field', required([{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }]), true],
    ['another field', required([{ matchFields: [{ key: 'spec.x', operator: 'In', values: ['n'] }] }]), false],
    [
      'one term of several',
      required([
        { matchExpressions: [{ key: 'x', operator: 'Exists' }] },
        { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] },
      ]),
      true,
    ],
    ['no terms', required([]), false],
    ['an empty term', required([{}]), false],
    [
      'an unknown operator',
      required([{ matchExpressions: [{ key: 'zone', operator: 'Near', values: ['a'] }] }]),
      false,
    ],
  ];
  for (const [what, spec, expected] of cases) {
    it(`${what}: ${expected ? 'selected' : 'not selected'}`, () =>
      assert.equal(selectsNode(spec, node(labels)), expected));
  }
});

describe('the node affinity that follows from a decision', () => {
  const hopeless = (cpus: number[], kinds = [kindOf(2), kindOf(4)]) =>
    smtAffinity({ cpus, candidates: kinds, reported: kinds })?.[0]?.values;

  it('excludes numbers of threads per core of which the CPUs are not a multiple', () => {
    assert.deepEqual(hopeless([10]), ['4']);
    assert.equal(hopeless([12]), undefined);
    assert.deepEqual(hopeless([12, 2]), ['4']);
  });

  it('is absent if every node is possible, and if none is', () => {
    assert.equal(hopeless([10], [kindOf(2)]), undefined);
    assert.equal(hopeless([9], [kindOf(2), kindOf(4)]), undefined);
    assert.equal(hopeless([10], [kindOf(2), kindOf(4, { fullPcpusOnly: false })]), undefined);
  });

  it('selects exactly the nodes that were selected before and are not hopeless', () => {
    const value = fc.constantFrom('2', '4', '8');
    const requirement = fc.record({
      key: fc.constantFrom('zone', 'rack'),
      operator: fc.constantFrom('In', 'NotIn', 'Exists'),
      values: fc.constant(['a']),
    });
    const field = fc.record({
      key: fc.constant('metadata.name'),
      operator: fc.constantFrom('In', 'NotIn'),
      values: fc.constantFrom(['n'], ['m']),
    });
    const list = <T>(one: fc.Arbitrary<T>) => fc.option(fc.array(one, { maxLength: 2 }), { nil: undefined });
    const terms = fc.option(
      fc.array(fc.record({ matchExpressions: list(requirement), matchFields: list(field) }), { maxLength: 3 }),
      { nil: undefined },
    );
    const labels = fc.record(
      {
        zone: fc.constantFrom('a', 'b'),
        [THREADS_PER_CORE_LABEL]: value,
        [FULL_PCPUS_LABEL]: fc.constantFrom('true', 'false'),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(terms, labels, (before, some) => {
        const alternatives = [
          { key: THREADS_PER_CORE_LABEL, operator: 'NotIn', values: ['4', '8'] },
          { key: FULL_PCPUS_LABEL, operator: 'NotIn', values: ['true'] },
        ];
        const one = node(some as Record<string, string>);
        const spec = before === undefined ? {} : required(before);
        const after = required([...withAlternatives(before, alternatives)]);
        const bad =
          ['4', '8'].includes(one.label(THREADS_PER_CORE_LABEL) ?? '') && one.label(FULL_PCPUS_LABEL) === 'true';
        assert.equal(selectsNode(after, one), selectsNode(spec, one) && !bad);
        assert.equal(selectsNode(beforeSmtAffinity(after), one), selectsNode(spec, one));
        assert.deepEqual(
          withAlternatives(withAlternatives(before, alternatives), alternatives),
          withAlternatives(before, alternatives),
        );
        const fieldsOf = (all: readonly NodeTerm[] = []) =>
          new Set(all.map(({ matchFields }) => JSON.stringify(matchFields ?? [])));
        assert.deepEqual(
          fieldsOf(withAlternatives(before, alternatives)),
          fieldsOf(before ?? alternatives.map(() => ({}))),
        );
      }),
    );
  });

  it('keeps the requirements of a user on fields, with and without requirements on labels', () => {
    const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['n'] }];
    const zone = { key: 'zone', operator: 'In', values: ['a'] };
    const [threads, full] = [
      { key: THREADS_PER_CORE_LABEL, operator: 'NotIn', values: ['4'] },
      { key: FULL_PCPUS_LABEL, operator: 'NotIn', values: ['true'] },
    ];
    const after = withAlternatives([{ matchFields }, { matchExpressions: [zone], matchFields }], [threads, full]);
    assert.deepEqual(after, [
      { matchExpressions: [threads], matchFields },
      { matchExpressions: [full], matchFields },
      { matchExpressions: [zone, threads], matchFields },
      { matchExpressions: [zone, full], matchFields },
    ]);
    const before = beforeSmtAffinity(required([...after]));
    for (const [name, expected] of [
      ['n', true],
      ['m', false],
    ] as const) {
      assert.equal(selectsNode(before, node({ zone: 'a' }, name)), expected, name);
      assert.equal(selectsNode(required([...after]), node({ zone: 'a' }, name)), expected, name);
    }
  });

  it('compares pairs of terms: terms that differ in a field are not a pair', () => {
    const on = (name: string) => [{ key: 'metadata.name', operator: 'In', values: [name] }];
    const own = required([
      { matchExpressions: [{ key: THREADS_PER_CORE_LABEL, operator: 'NotIn', values: ['4'] }], matchFields: on('n') },
      { matchExpressions: [{ key: FULL_PCPUS_LABEL, operator: 'NotIn', values: ['true'] }], matchFields: on('m') },
    ]);
    assert.equal(beforeSmtAffinity(own), own);
  });

  it('is distinct from a user’s own requirement on the same labels, which stays', () => {
    const own = (values: string[]) => ({ key: THREADS_PER_CORE_LABEL, operator: 'NotIn', values });
    const alternatives = [own(['4']), { key: FULL_PCPUS_LABEL, operator: 'NotIn', values: ['true'] }];
    const users: NodeTerm[][] = [
      [{ matchExpressions: [own(['8'])] }],
      [{ matchExpressions: [own(['4'])] }],
      [{ matchExpressions: [{ key: FULL_PCPUS_LABEL, operator: 'NotIn', values: ['true'] }] }],
      [{ matchExpressions: [own(['8']), { key: 'zone', operator: 'In', values: ['a'] }] }, { matchExpressions: [] }],
    ];
    for (const terms of users) {
      assert.deepEqual(beforeSmtAffinity(required(terms)), required(terms));
      const after = required([...withAlternatives(terms, alternatives)]);
      for (const threads of ['2', '4', '8']) {
        for (const full of ['true', 'false']) {
          const one = node({ zone: 'a', [THREADS_PER_CORE_LABEL]: threads, [FULL_PCPUS_LABEL]: full });
          const expected = selectsNode(required(terms), one);
          assert.equal(selectsNode(beforeSmtAffinity(after), one), expected, JSON.stringify([terms, threads, full]));
        }
      }
    }
  });

  it('is added to the affinity of the pod, and a second pass finds it', async () => {
    const pod = podVector();
    const view = viewOf([kindOf(2), kindOf(4)], { candidates: () => [kindOf(2)] });
    const after = patched(pod, await mutationOf({ view })(requestFor(pod)));
    const text = JSON.stringify(after.spec['affinity']);
    assert.match(text, /obsolete-host-model.*threads-per-core","operator":"NotIn","values":\["4"\]/);
    assert.deepEqual(patchOf(await mutationOf({ view })(requestFor(after))), []);
  });

  it('is added to a pod without an affinity', async () => {
    const pod = podVector();
    delete pod.spec['affinity'];
    const view = viewOf([kindOf(2), kindOf(8)], { candidates: () => [kindOf(2)] });
    const after = patched(pod, await mutationOf({ view })(requestFor(pod)));
    assert.equal(JSON.stringify(after.spec['affinity']).match(/NotIn/g)?.length, 2);
  });
});
