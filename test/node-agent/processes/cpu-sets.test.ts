import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createSets } from '../../../node-agent/processes/cpu-sets.ts';

const words = (text: string, length = 2) => CpuSet.parse(text).toWords(length);

describe('sets made of masks', () => {
  it('equal masks are one set, others are their own', () => {
    const setOf = createSets();
    const one = setOf(words('0-3'));
    assert.equal(String(one), '0-3');
    assert.equal(setOf(words('0-3')), one);
    assert.equal(String(setOf(words('0-4'))), '0-4');
    assert.equal(String(setOf(words('0-3,40'))), '0-3,40');
    assert.equal(String(setOf(words('1-3'))), '1-3');
    assert.equal(setOf(words('0-3')), one);
  });

  it('a mask of another length is another mask', () => {
    const setOf = createSets();
    setOf(words('0-3', 4));
    assert.equal(String(setOf(CpuSet.parse('0-3,70').toWords(4))), '0-3,70');
    assert.equal(String(setOf(CpuSet.parse('0-3').toWords(2))), '0-3');
    const longer = createSets();
    longer(words('0-3'));
    assert.equal(String(longer(CpuSet.parse('0-3,70').toWords(4))), '0-3,70');
  });

  it('the same buffer is the same set, without a look at its words', () => {
    const setOf = createSets();
    const mask = words('5');
    assert.equal(setOf(mask), setOf(mask));
  });

  it('the last four are kept, and no more', () => {
    const setOf = createSets();
    const made = ['1', '2', '3', '4'].map((text) => setOf(words(text)));
    assert.deepEqual(
      ['1', '2', '3', '4'].map((text, i) => setOf(words(text)) === made[i]),
      [true, true, true, true],
    );
    setOf(words('5'));
    assert.equal(setOf(words('2')), made[1]);
    assert.equal(setOf(words('3')), made[2]);
    assert.equal(setOf(words('4')), made[3]);
    assert.notEqual(setOf(words('1')), made[0]);
  });
});
