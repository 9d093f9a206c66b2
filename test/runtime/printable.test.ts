import assert from 'node:assert/strict';
import { printable } from '../../runtime/printable.ts';

describe('a text for a terminal', () => {
  for (const [text, expected] of [
    ['plain text with ’ … ✔ ü 日本 😀', 'plain text with ’ … ✔ ü 日本 😀'],
    ['a\u001b[31mb', 'a\\x1b[31mb'],
    ['a\r\nb\tc', 'a\\r\\nb\\tc'],
    ['\u009b\u007f\u0000', '\\x9b\\x7f\\x00'],
    ['\u2028\u202e\u2066\ufeff', '\\u2028\\u202e\\u2066\\ufeff'],
    ['\u{e0041}', '\\udb40\\udc41'],
    ['\ud800', '\\ud800'],
    ['x'.repeat(4100), `${'x'.repeat(4096)}… (4 more characters)`],
  ] as const) {
    it(JSON.stringify(text).slice(0, 60), () => assert.equal(printable(text), expected));
  }
});
