import assert from 'node:assert/strict';
import { MOST_TEXTS, Texts } from '../../../scheduler-plugin/filter/texts.ts';

describe('the texts of one answer', () => {
  it('hold each text once, with the number of its nodes', () => {
    const texts = new Texts();
    const numbers = ['few', 'few', 'many', 'few'].map((text) => texts.give('too-few-cpus', text));
    assert.deepEqual(numbers, [1, 1, 2, 1]);
    assert.equal(texts.again(2), 2);
    assert.deepEqual(
      texts.list.map(({ text, nodes, json }) => [text, nodes, json]),
      [
        ['few', 3, '"few"'],
        ['many', 2, '"many"'],
      ],
    );
  });

  it('are at most eight: one is for DPUs and one for all other reasons, so that each node counts', () => {
    const texts = new Texts();
    for (let i = 0; i < 20; i++) texts.give('too-few-cpus', `${i} CPUs`);
    for (let i = 0; i < 20; i++) texts.give('dpu', `silent for ${i} s`);
    for (let i = 0; i < 20; i++) texts.give('cpu-mask', `mask ${i}`);
    assert.deepEqual(
      texts.list.map(({ text, nodes }) => [text, nodes]),
      [
        ...Array.from({ length: MOST_TEXTS - 2 }, (_, i) => [`${i} CPUs`, 1]),
        ['refused for another reason; see /explain', 34],
        ['DPU not ready for too long', 20],
      ],
    );
  });
});
