import assert from 'node:assert/strict';
import { resizeRefusal } from '../../../model/admission/resize.ts';
import { container, launcher, ordinary } from './fixture.ts';

const VM = 'this pod has whole cores, which cannot be resized in place: change the VM and restart or migrate it';
const POD = 'this pod has whole cores, which cannot be resized in place: delete and create it again';
const on = { gate: true, policy: 'annotated' } as const;
const off = { ...on, gate: false };
const all = { ...on, policy: 'auto' } as const;
const vm = launcher().pod;
const larger = launcher({ containers: [container('compute', '12')] }).pod;
const plain = launcher({ annotations: {} }).pod;
const pod = ordinary().pod;
const grown = ordinary({ containers: [container('dpdk', '5')] }).pod;
const init = (cpu: string) => ordinary({ initContainers: [container('i', cpu)] }).pod;
describe('an in-place resize', () => {
  for (const [what, before, after, settings, expected] of [
    ['a launcher with whole cores', vm, larger, on, VM],
    ['a launcher while the gate is off', vm, larger, off, undefined],
    ['a launcher without the annotation', plain, larger, on, undefined],
    ['a launcher without the annotation if all are aligned', plain, larger, all, VM],
    ['an ordinary pod with whole cores', pod, grown, on, POD],
    ['an ordinary pod, even if the gate is off', pod, grown, off, POD],
    ['an init container', init('2'), init('4'), on, POD],
  ] as const) {
    it(`${what}: ${expected === undefined ? 'allowed' : 'refused'}`, () =>
      assert.equal(resizeRefusal(before, after, settings), expected));
  }
});
