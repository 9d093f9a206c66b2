import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createSets } from '../../../node-agent/processes/cpu-sets.ts';

const words = (text: string, length = 2) => CpuSet.parse(text).toWords(length);

describe('CPU sets of affinity masks', () => {
  it('are shared for equal masks only', () => {
    const setOf = createSets();
    const one = setOf(words('0-3'));
    assert.equal(String(one), '0-3');
    assert.equal(setOf(words('0-3')), one);
    assert.equal(String(setOf(words('0-4'))), '0-4');
    assert.equal(String(setOf(words('0-3,40'))), '0-3,40');
    assert.equal(String(setOf(words('1-3'))), '1-3');
    assert.equal(setOf(words('0-3')), one);
  });

  it('differ for masks of different lengths', () => {
    const setOf = createSets();
    setOf(words('0-3', 4));
    assert.equal(String(setOf(CpuSet.parse('0-3,70').toWords(4))), '0-3,70');
    assert.equal(String(setOf(CpuSet.parse('0-3').toWords(2))), '0-3');
    const longer = createSets();
    longer(words('0-3'));
    assert.equal(String(longer(CpuSet.parse('0-3,70').toWords(4))), '0-3,70');
  });

  it('are shared for the same buffer without reading its words', () => {
    const setOf = createSets();
    const mask = words('5');
    assert.equal(setOf(mask), setOf(mask));
  });

  it('are kept for the last four masks', () => {
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
