import assert from 'node:assert/strict';
import { createInterning } from '../../kube/interning.ts';
import { labelIn, packLabels, sameLabels } from '../../kube/packed-labels.ts';

const asIs = (text: string) => text;

describe('packed labels', () => {
  it('keep every label, in order, and are found by key', () => {
    const packed = packLabels({ a: '1', b: '', c: 'a' }, asIs);
    assert.deepEqual(packed, ['a', '1', 'b', '', 'c', 'a']);
    assert.deepEqual([labelIn(packed, 'b'), labelIn(packed, 'c'), labelIn(packed, '1')], ['', 'a', undefined]);
  });

  it('are equal only with the same keys and values', () => {
    const one = packLabels({ a: '1', b: '2' }, asIs);
    assert.ok(sameLabels(one, packLabels({ a: '1', b: '2' }, asIs)));
    assert.ok(!sameLabels(one, packLabels({ a: '1', b: '3' }, asIs)));
    assert.ok(!sameLabels(one, packLabels({ a: '1' }, asIs)));
    assert.ok(!sameLabels(packLabels({ a: '1' }, asIs), one));
  });
});

describe('interning', () => {
  it('returns the text, before and after it was emptied', () => {
    const intern = createInterning(2);
    for (const text of ['a', 'b', 'a', 'c', 'd', 'a', 'b', 'c']) assert.equal(intern(text), text);
  });
});
