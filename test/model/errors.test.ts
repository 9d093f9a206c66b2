import assert from 'node:assert/strict';
import fc from 'fast-check';
import * as z from 'zod';
import { cut, issuesText, quote } from '../../model/errors.ts';

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
