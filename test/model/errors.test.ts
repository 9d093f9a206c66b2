import assert from 'node:assert/strict';
import fc from 'fast-check';
import * as z from 'zod';
import { cut, issuesText, ParseError, quote } from '../../model/errors.ts';
import { integralCpus, milliValue, parseQuantity, wholeValue } from '../../model/quantity.ts';

describe('errors', () => {
  it('quote text in one short line', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 500 }), (text) => {
        const quoted = quote(text);
        // Each character is escaped to at most six.
        assert.ok(quoted.length <= 80 * 6 + 3);
        assert.doesNotMatch(quoted, /[\n\r\0]/);
      }),
    );
    assert.equal(quote('a\nb'), '"a\\nb"');
    assert.ok(quote('x'.repeat(81)).endsWith('"…'));
  });

  it('keep whole characters of a text that they shorten', () => {
    assert.deepEqual([cut('abcd', 4), cut('abcde', 4), cut('', 4)], ['abcd', 'abc…', '']);
    assert.equal(cut('ab😀cd', 4), 'ab…');
    assert.equal(cut('a😀bcd', 4), 'a😀…');
    // The first and the last high surrogate, and their neighbours.
    assert.deepEqual(
      [0xd7ff, 0xd800, 0xdbff, 0xdc00].map((unit) => cut(`ab${String.fromCharCode(unit)}cde`, 4).length),
      [4, 3, 3, 4],
    );
  });

  it('name the first three invalid places, without texts of the writer that a terminal may interpret', () => {
    const text = (schema: z.ZodType, value: unknown) => issuesText(schema.safeParse(value).error!);
    const number = 'expected number, received string';
    const four = z.object({ a: z.object({ b: z.number() }), c: z.number(), d: z.number(), e: z.number() });
    const places = (...names: string[]) => names.map((name) => `${name}: ${number}`).join('; ');
    assert.equal(text(z.number(), 'x'), places('the whole'));
    assert.equal(text(four, { a: { b: '' }, c: '', d: '', e: '' }), places('a.b', 'c', 'd'));
    const keys = { ['k'.repeat(81)]: '', '\u001b[2J': '', '\ud800': '' };
    assert.equal(text(z.record(z.string(), z.number()), keys), places('*', '*', '*'));
  });
});

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
