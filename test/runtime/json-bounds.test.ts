import assert from 'node:assert/strict';
import { assertBoundedJson } from '../../runtime/json-bounds.ts';
import { leastProcessorTime } from '../support/processor-time.ts';

const MIB = 1024 * 1024;

describe('JSON before it is decoded', () => {
  it('has a limited number of values and levels', () => {
    for (const json of [`[${'{},'.repeat(300_000)}{}]`, '['.repeat(100_000), `{"a":[${'1,'.repeat(400_000)}1]}`]) {
      assert.throws(() => assertBoundedJson(Buffer.from(json)), { status: 413 });
    }
    assertBoundedJson(Buffer.from(JSON.stringify(Array(90_000).fill('value'))));
    assert.throws(
      () => assertBoundedJson(Buffer.from(JSON.stringify(Array(110_000).fill('value')))),
      /more than 100000 values/,
    );
    assert.throws(
      () => assertBoundedJson(Buffer.from(JSON.stringify(Array(50_000).fill(0)))),
      /more than 25001 values/,
    );
    const prose = JSON.stringify({ text: '{},[]\\"'.repeat(100_000), list: [1, { a: 'b' }] });
    assertBoundedJson(Buffer.from(prose));
    assertBoundedJson(Buffer.from('"never closed \\'));
  });
  it('is scanned once', () => {
    const bytes = Buffer.alloc(7 * MIB, 'a');
    bytes[0] = 0x22;
    const spent = leastProcessorTime(() => assertBoundedJson(bytes));
    assert.ok(spent < 100, `${spent} ms`);
  });
});
