import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ParseError } from '../../../model/errors.ts';
import { milliValue, parseQuantity, wholeValue } from '../../../model/quantity.ts';
import { almost, withLong } from '../mutation.ts';
import { parsedOrRefused, type Target } from '../target.ts';

const SUFFIXES: Readonly<Record<string, number>> = {
  '': 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};
const number = fc.oneof(
  fc.nat().map(String),
  fc.tuple(fc.nat(999), fc.nat(999)).map(([whole, part]) => `${whole}.${part}`),
);
const suffix = fc.oneof(
  fc.constantFrom(...Object.keys(SUFFIXES)),
  fc.integer({ min: -20, max: 20 }).map((power) => `e${power}`),
);
const amount = fc.tuple(fc.constantFrom('', '', '+', '-'), number, suffix).map((parts) => parts.join(''));

export const quantity: Target<string> = {
  name: 'quantity',
  about: 'amounts of CPUs and memory match floating-point numbers, rounded up',
  inputs: withLong(
    almost(amount, ['9', '500m', '8Gi', '9e0', '.5']),
    1000,
    { piece: '9' },
    { head: '.', piece: '0', tail: '1' },
    { piece: '9', tail: 'Ei' },
    { head: '1e-', piece: '9' },
  ),
  judge(text) {
    const parsed = parsedOrRefused(() => parseQuantity(text), ParseError);
    if (parsed === undefined) return 'refused';
    const [, digits = '', unit = ''] = /^([-+.\d]+(?:[eE][-+]?\d+)?)(.*)$/.exec(text) ?? [];
    const expected = Number(digits) * (SUFFIXES[unit] ?? Number.NaN);
    // Rounded up to a billionth, and beyond the precision of a double.
    const allowed = 1.1e-9 + Math.abs(expected) * 1e-12;
    assert.ok(Math.abs(Number(parsed.value.nano) / 1e9 - expected) <= allowed, `${parsed.value.nano} billionths`);
    assert.equal(wholeValue(parsed.value), Number((parsed.value.nano + roundUp(parsed.value.nano)) / 1_000_000_000n));
    assert.ok(milliValue(parsed.value) >= Number(parsed.value.nano) / 1e6 - Math.abs(expected));
    return 'accepted';
  },
};

/** The difference to the next whole number; zero for negative ones, where division itself rounds up. */
const roundUp = (nano: bigint) => (nano > 0n ? 999_999_999n : 0n);
