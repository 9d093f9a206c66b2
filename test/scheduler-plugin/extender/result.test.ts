import assert from 'node:assert/strict';
import { filterError, filterResult } from '../../../scheduler-plugin/extender/args.ts';
import type { FilterOutcome } from '../../../scheduler-plugin/filter/filter.ts';
import { Refusals } from '../../../scheduler-plugin/filter/refusals.ts';

describe('the result of a filter call', () => {
  const outcome = (passed: readonly string[], refused: readonly string[]): FilterOutcome => {
    const refusals = new Refusals();
    for (const name of refused) refusals.add(name, { kind: 'too-few-cpus', text: 'too few free CPUs' });
    return {
      offered: passed.length + refused.length,
      answers: passed.map((node) => ({ node, score: 1, cpus: undefined })),
      refusals,
    };
  };
  const CASES: readonly [what: string, passed: readonly string[], refused: readonly string[]][] = [
    ['no node', [], []],
    ['a node that passes', ['n1'], []],
    ['a refused node', [], ['n2']],
    ['nodes of both kinds', ['n1', 'n3'], ['n2', '__proto__']],
  ];
  for (const [what, passed, refused] of CASES) {
    it(`has the names that passed, and the text of each other one: ${what}`, () => {
      const result = filterResult(outcome(passed, refused), undefined);
      assert.deepEqual([result.Nodes, result.NodeNames, result.FailedNodes, result.Error], [null, passed, {}, '']);
      assert.deepEqual(
        Object.entries(result.FailedAndUnresolvableNodes ?? {}),
        refused.map((name) => [name, 'too few free CPUs']),
      );
    });
  }

  it('has the whole objects of the nodes that passed, if they were sent', () => {
    const nodes = ['n1', 'n2'].map((name) => ({ metadata: { name, labels: { a: name } }, spec: {} }));
    const { Nodes } = filterResult(outcome(['n1'], ['n2']), nodes);
    assert.deepEqual(Nodes?.items, [nodes[0]]);
  });

  it('of a call that failed has no list, so that no node counts as passed', () => {
    const { Error: text, ...lists } = filterError('why');
    assert.equal(text, 'why');
    assert.deepEqual(Object.values(lists), [null, null, null, null]);
  });
});
