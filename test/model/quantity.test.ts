import assert from 'node:assert/strict';
import { ParseError } from '../../model/errors.ts';
import { integralCpus, milliValue, parseQuantity, wholeValue } from '../../model/quantity.ts';

describe('quantities', () => {
  it('are read up to 64 characters and the exponent 18', () => {
    const padded = '1'.padStart(64, '0');
    assert.equal(wholeValue(parseQuantity(padded)), 1);
    for (const text of [`0${padded}`, '1e19', '0.1e20'])
      assert.throws(() => parseQuantity(text), { message: /: the amount is too large$/ });
    assert.equal(wholeValue(parseQuantity('1e18')), 1e18);
    assert.equal(wholeValue(parseQuantity('0.1e19')), 1e18);
  });

  const amounts: [text: string, milli: number][] = [
    ['9', 9000],
    ['9e0', 9000],
    ['0.009k', 9000],
    ['.5', 500],
    ['5e-1', 500],
    ['1n', 1],
    ['-1', -1000],
    ['1Ki', 1_024_000],
    ['1M', 1_000_000_000],
    ['1E', 1e21],
  ];
  for (const [text, milli] of amounts) {
    it(`read ${text} as ${milli} thousandths, rounded up`, () => assert.equal(milliValue(parseQuantity(text)), milli));
  }

  for (const text of ['', 'nine', '9x', '9mm', '1e', '0x9', '1e99', 'Infinity', '9'.repeat(1_000_000)]) {
    it(`refuse ${JSON.stringify(text.slice(0, 20))}`, () => assert.throws(() => parseQuantity(text), ParseError));
  }

  it('count exclusive CPUs only in whole amounts', () => {
    for (const text of ['9', '9000m', '9e0', '0.9e1', '9.000', '8999999999n'])
      assert.equal(integralCpus(text), 9, text);
    for (const text of ['9001m', '0.5', '200m']) assert.equal(integralCpus(text), undefined, text);
  });
});
