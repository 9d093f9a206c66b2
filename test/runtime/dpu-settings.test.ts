import assert from 'node:assert/strict';
import { dpuSettings } from '../../runtime/dpu-settings.ts';

const { dpuExempt } = dpuSettings;
const members = (count: number) => Array.from({ length: count }, () => 'a').join();

describe('the namespaces that may start pods while the DPU is dead', () => {
  it('are separated by commas, also by prefix, and at most 128', () => {
    assert.deepEqual(dpuExempt.parse('kube-system, openshift-*'), ['kube-system', 'openshift-*']);
    assert.deepEqual(dpuExempt.parse(''), []);
    assert.equal(dpuExempt.parse(members(128)).length, 128);
  });

  for (const [text, message] of [
    ['*', /"\*" is not a namespace, nor the beginning of names \(name\*\)/],
    ['A', /"A" is not a namespace/],
    ['a**', /"a\*\*" is not a namespace/],
    ['a*b', /"a\*b" is not a namespace/],
    [members(129), /at most 128 members/],
  ] as const) {
    it(`are refused: ${text.slice(0, 20)}`, () =>
      assert.match(dpuExempt.safeParse(text).error?.issues[0]?.message ?? '', message));
  }
});
