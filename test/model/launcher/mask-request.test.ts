import assert from 'node:assert/strict';
import { parseMask } from '../../../model/cpu-mask/mask.ts';
import { ParseError } from '../../../model/errors.ts';
import { maskRefusals, maskRequestKey, maskRequestOf, maskWithOwnCpus } from '../../../model/launcher/mask-request.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { leastProcessorTime } from '../../support/processor-time.ts';

const MASK = 'plumbline.dev/cpu-mask';
const FIX = 'plumbline.dev/fix-cpu-mismatch';
/** A mask with a thousand wide entries. */
const wide = Array.from({ length: 1000 }, (_, start) => `${start}-1023`).join(':');

describe('the mask of a VM or its launcher', () => {
  const refusals = (mask: string, cpu: object, vcpusUnknown = false) =>
    maskRefusals({ metadata: { annotations: { [MASK]: mask } }, spec: { domain: { cpu } }, vcpusUnknown });
  for (const [what, mask, cpu, expected] of [
    ['as many entries as vCPUs', '1:2', { cores: 2 }, undefined],
    [
      'CPUs of its own',
      '1:2',
      { cores: 2, dedicatedCpuPlacement: true },
      `annotation ${MASK} (1:2) and dedicatedCpuPlacement are mutually exclusive: KubeVirt pins dedicated CPUs. Remove one of the two`,
    ],
    ['more entries than vCPUs', '1:2:3', { cores: 2 }, new RegExp(`^annotation ${MASK}: .*3.*2`)],
    ['no mask', 'x', { cores: 2 }, new RegExp(`^annotation ${MASK}: `)],
  ] as const) {
    it(`is ${expected === undefined ? 'accepted' : 'refused'}: ${what}`, () => {
      const [refusal, ...others] = refusals(mask, cpu);
      assert.deepEqual(others, []);
      if (expected instanceof RegExp) assert.match(refusal ?? '', expected);
      else assert.equal(refusal, expected);
    });
  }

  it('is not compared with vCPUs that are unknown', () => assert.deepEqual(refusals('1:2:3', { cores: 2 }, true), []));

  it('is refused for a launcher that gets CPUs of its own', () => {
    const [refusal] = maskWithOwnCpus({ annotations: { [MASK]: '1:2' } });
    assert.match(refusal ?? '', new RegExp(`^annotation ${MASK}: .* are equal and whole CPUs`));
    assert.deepEqual(maskWithOwnCpus({ annotations: { [MASK]: 'all' } }), []);
  });
});

describe('a mask request', () => {
  const request = (annotations: Record<string, string>) => maskRequestOf({ annotations });

  it('has a mask and a key', () => {
    assert.equal(maskRequestOf({}), undefined);
    assert.equal(request({ [MASK]: 'all' }), undefined);
    const plain = request({ [MASK]: '1:2' })!;
    assert.deepEqual([plain.fixMismatch, plain.mask], [false, parseMask('1:2')]);
    assert.equal(maskRequestKey(plain), '1:2');
    assert.equal(maskRequestKey(request({ [MASK]: '1:2', [FIX]: 'true' })!), '1:2 or all');
    assert.equal(request({ [MASK]: '1:2', [FIX]: 'yes' })!.fixMismatch, false);
    assert.equal(maskRequestKey({ mask: parseMask('1,0:2'), fixMismatch: true }), '0-1:2 or all');
    assert.throws(() => request({ [MASK]: 'x' }), ParseError);
  });

  it('takes only the memory of its text, for thousands of VMs', () => {
    const requests = (from: number) =>
      Array.from({ length: 400 }, (_, i) => request({ [MASK]: `${from + i}:${wide}` })!);
    const some = requests(0);
    collectGarbage();
    const before = process.memoryUsage();
    const more = requests(400);
    collectGarbage();
    const after = process.memoryUsage();
    const each = (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / more.length;
    assert.ok(each < 40_000, `${each} bytes each`);
    const spent = leastProcessorTime(() => {
      for (const one of [...some, ...more]) for (let node = 0; node < 50; node++) maskRequestKey(one);
    });
    assert.ok(spent < 200, `${spent} ms for the keys of 800 masks on 50 nodes`);
  });
});
