import assert from 'node:assert/strict';
import { assertBoundedJson } from '../../runtime/json-bounds.ts';
import { leastProcessorTime } from '../support/processor-time.ts';

const MIB = 1024 * 1024;

describe('JSON before it is decoded', () => {
  it('has a limited number of values and levels', () => {
    const check = (json: string) => assertBoundedJson(Buffer.from(json));
    const listOf = (count: number, value: unknown) => JSON.stringify(Array(count).fill(value));
    for (const json of [`[${'{},'.repeat(300_000)}{}]`, '['.repeat(100_000), `{"a":[${'1,'.repeat(400_000)}1]}`]) {
      assert.throws(() => check(json), { status: 413 });
    }
    check(listOf(90_000, 'value'));
    assert.throws(() => check(listOf(110_000, 'value')), /more than 100000 values/);
    assert.throws(() => check(listOf(50_000, 0)), /more than 25001 values/);
    check(JSON.stringify({ text: '{},[]\\"'.repeat(100_000), list: [1, { a: 'b' }] }));
    check('"never closed \\');
  });
  it('is scanned once', () => {
    const bytes = Buffer.alloc(7 * MIB, 'a');
    bytes[0] = 0x22;
    const spent = leastProcessorTime(() => assertBoundedJson(bytes));
    assert.ok(spent < 100, `${spent} ms`);
  });
});
