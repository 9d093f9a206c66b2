import assert from 'node:assert/strict';
import type { RefusalKind } from '../../../model/placement/verdict.ts';
import { MAX_TEXTS, Refusals } from '../../../scheduler-plugin/filter/refusals.ts';

describe('the refusals of one answer', () => {
  const refusalsOf = (...refused: readonly (readonly [RefusalKind, string])[]) => {
    const refusals = new Refusals();
    refused.forEach(([kind, text], i) => {
      refusals.add(`n${i}`, { kind, text });
    });
    return refusals;
  };
  const counts = ({ texts }: Refusals) => texts.map(({ text, nodes }) => [text, nodes]);

  it('have each text once, with the number of its nodes', () => {
    const refusals = refusalsOf(...['few', 'few', 'many', 'few'].map((text) => ['too-few-cpus', text] as const));
    assert.deepEqual(counts(refusals), [
      ['few', 3],
      ['many', 1],
    ]);
    assert.deepEqual({ ...refusals.byNode }, { n0: 'few', n1: 'few', n2: 'many', n3: 'few' });
  });

  it('count a name that the call has twice once, whatever the name', () => {
    const refusals = new Refusals();
    for (const name of ['n1', '__proto__', 'n1', '__proto__'])
      refusals.add(name, { kind: 'too-few-cpus', text: 'few' });
    assert.deepEqual(counts(refusals), [['few', 2]]);
    assert.equal(JSON.stringify(refusals.byNode), '{"n1":"few","__proto__":"few"}');
  });

  it('have at most eight texts: one is for DPUs and one for all other reasons, so that each node counts', () => {
    const twenty = (kind: RefusalKind, text: (i: number) => string) =>
      Array.from({ length: 20 }, (_, i) => [kind, text(i)] as const);
    const refusals = refusalsOf(
      ...twenty('too-few-cpus', (i) => `${i} CPUs`),
      ...twenty('dpu', (i) => `silent for ${i} s`),
      ...twenty('cpu-mask', (i) => `mask ${i}`),
    );
    assert.deepEqual(counts(refusals), [
      ...Array.from({ length: MAX_TEXTS - 2 }, (_, i) => [`${i} CPUs`, 1]),
      ['refused for another reason; see /explain', 34],
      ['DPU not ready for too long', 20],
    ]);
    assert.equal(Object.keys(refusals.byNode).length, 60);
  });
});
