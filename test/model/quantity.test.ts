import assert from 'node:assert/strict';
import { bytesText, integralCpus, milliValue, parseQuantity, wholeValue } from '../../model/quantity.ts';

describe('quantities of Kubernetes', () => {
  for (const [text, whole, milli] of [
    ['9', 9, 9000],
    ['9000m', 9, 9000],
    ['9e0', 9, 9000],
    ['0.009k', 9, 9000],
    ['.5', 1, 500],
    ['5e-1', 1, 500],
    ['1.0001', 2, 1001],
    ['-1', -1, -1000],
    ['1n', 1, 1],
    ['2k', 2000, 2_000_000],
    ['1M', 1e6, 1e9],
    ['1Ki', 1024, 1_024_000],
    ['1436Mi', 1436 * 2 ** 20, 1436 * 2 ** 20 * 1000],
    ['1E', 1e18, 1e21],
    ['1e-3', 1, 1],
  ] as const) {
    it(`${text}: ${whole} whole units, ${milli} thousandths, both rounded up`, () => {
      assert.deepEqual([wholeValue(parseQuantity(text)), milliValue(parseQuantity(text))], [whole, milli]);
    });
  }

  for (const text of [
    '',
    'nine',
    '1x',
    '9mm',
    '1 Gi',
    '0x1',
    '1e',
    '1Kie3',
    '1e99',
    'Infinity',
    '9'.repeat(1_000_000),
  ]) {
    it(`"${text.slice(0, 9)}" is refused`, () => assert.throws(() => parseQuantity(text), { name: 'ParseError' }));
  }

  it('have up to 64 characters and the exponent 18', () => {
    const padded = '1'.padStart(64, '0');
    assert.deepEqual(
      [padded, '1e18', '0.1e19'].map((text) => wholeValue(parseQuantity(text))),
      [1, 1e18, 1e18],
    );
    for (const text of [`0${padded}`, '1e19', '0.1e20'])
      assert.throws(() => parseQuantity(text), { message: /: the amount is too large$/ });
  });

  it('are CPUs of the static CPU manager only if they are whole', () => {
    for (const text of ['9', '9000m', '9e0', '0.9e1', '9.000', '8999999999n'])
      assert.equal(integralCpus(text), 9, text);
    for (const text of ['9001m', '0.5', '200m']) assert.equal(integralCpus(text), undefined, text);
  });

  it('bytes are shown in the largest unit, with a decimal below ten', () => {
    const amounts = [0, 1023, 1536, 10.6 * 1024, 2 ** 40 * 5000];
    assert.deepEqual(amounts.map(bytesText), ['0 B', '1023 B', '1.5 KiB', '11 KiB', '5000 TiB']);
  });
});
