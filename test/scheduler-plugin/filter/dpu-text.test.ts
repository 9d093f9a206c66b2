import assert from 'node:assert/strict';
import type { LeaseState } from '../../../model/lease/observer.ts';
import { dpuRefusal } from '../../../scheduler-plugin/filter/node-verdicts.ts';

describe('the refusal of a node with a dead DPU', () => {
  const textOf = (state: LeaseState, age?: number) => dpuRefusal({ ready: false, state, age });

  for (const [state, text] of [
    ['unknown', 'DPU not ready: its state is unknown'],
    ['unproven', 'DPU not ready: not seen alive yet'],
    ['alive', 'DPU not ready: not seen alive yet'],
  ] as const) {
    it(`${state}, without a renewal: ${text}`, () => {
      const { kind, text: said } = textOf(state);
      assert.deepEqual([kind, said], ['dpu', text]);
    });
  }

  const AGES: readonly [number, number][] = [
    [59.9, 50],
    [10_000_000, 604_800],
  ];
  for (const [age, shown] of AGES) {
    it(`shows ${shown} s after ${age} s`, () => {
      assert.equal(textOf('dead', age).text, `DPU not ready: dead, last renewal ${shown} s ago`);
    });
  }
});
