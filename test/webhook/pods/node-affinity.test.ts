import assert from 'node:assert/strict';
import fc from 'fast-check';
import { type NodeTerm, type SelectingSpec, selectsNode } from '../../../model/launcher/node-selection.ts';
import { beforeSmtAffinity, withAlternatives } from '../../../model/launcher/smt-affinity.ts';
import { FULL_PCPUS_LABEL, THREADS_PER_CORE_LABEL } from '../../../model/names.ts';
import { kindOf, mutationOf, patched, patchOf, podVector, requestFor, viewOf } from '../launcher-fixture.ts';

const node = (labels: Record<string, string>, name = 'n') => ({ name, label: (key: string) => labels[key] });
const required = (nodeSelectorTerms: NodeTerm[]): SelectingSpec => ({
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
});

describe('the node affinity that follows from a decision', () => {
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
      }),
    );
  });

  it('is added to the affinity of the pod, and a second pass finds it', async () => {
    const pod = podVector();
    const view = viewOf([kindOf(2), kindOf(4)], { candidates: () => [kindOf(2)] });
    const after = patched(pod, await mutationOf({ view })(requestFor(pod)));
    const text = JSON.stringify(after.spec['affinity']);
    assert.match(text, /obsolete-host-model.*threads-per-core","operator":"NotIn","values":\["4"\]/);
    assert.deepEqual(patchOf(await mutationOf({ view })(requestFor(after))), []);
  });
});
