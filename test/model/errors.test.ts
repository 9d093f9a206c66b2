import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ParseError, PlumblineError, quote } from '../../model/errors.ts';

describe('errors', () => {
  it('have a code, a name and a cause', () => {
    const cause = new Error('underneath');
    const error = new ParseError('CPU list', '1-', 'expected a number', { cause });
    assert.ok(error instanceof PlumblineError && error instanceof Error);
    assert.equal(error.code, 'parse');
    assert.equal(error.name, 'ParseError');
    assert.equal(error.cause, cause);
    assert.equal(error.message, 'CPU list "1-": expected a number');
  });

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
});
