import assert from 'node:assert/strict';
import { bytesText, integralCpus, milliValue, parseQuantity, wholeValue } from '../../model/quantity.ts';

describe('quantities of Kubernetes', () => {
  for (const [text, whole, milli] of [
    ['9', 9, 9000],
    ['9000m', 9, 9000],
    ['9e0', 9, 9000],
    ['.5', 1, 500],
    ['1.0001', 2, 1001],
    ['-1', -1, -1000],
    ['1n', 1, 1],
    ['2k', 2000, 2_000_000],
    ['1436Mi', 1436 * 2 ** 20, 1436 * 2 ** 20 * 1000],
    ['1E', 1e18, 1e21],
    ['1e-3', 1, 1],
  ] as const) {
    it(`${text}: ${whole} whole units, ${milli} thousandths, both rounded up`, () => {
      assert.deepEqual([wholeValue(parseQuantity(text)), milliValue(parseQuantity(text))], [whole, milli]);
    });
  }

  for (const text of ['', '1x', '1 Gi', '0x1', '1e', '1Kie3', '1e19', '9'.repeat(65)]) {
    it(`"${text.slice(0, 9)}" is refused`, () => assert.throws(() => parseQuantity(text), { name: 'ParseError' }));
  }

  it('are CPUs of the static CPU manager only if they are whole', () => {
    assert.deepEqual(['2', '2000m', '2.0', '2001m', '500m'].map(integralCpus), [2, 2, 2, undefined, undefined]);
  });

  it('bytes are shown in the largest unit, with a decimal below ten', () => {
    const amounts = [0, 1023, 1536, 10.6 * 1024, 2 ** 40 * 5000];
    assert.deepEqual(amounts.map(bytesText), ['0 B', '1023 B', '1.5 KiB', '11 KiB', '5000 TiB']);
  });
});
