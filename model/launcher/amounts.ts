import { integralCpus, milliValue, parseQuantity } from '../quantity.ts';

/** Properties of an amount that the rules for containers use. */
interface Amount {
  /** The number of CPUs if it is a whole number, else undefined. */
  readonly whole: number | undefined;
  readonly isZero: boolean;
}

/**
 * Cache of parsed amounts. Pods repeat the same few amounts, each is used several times, and parsing needs big
 * integers.
 */
const known = new Map<string, Amount>();
const MOST_KNOWN = 1000;

function amountOf(text: string): Amount {
  const found = known.get(text);
  if (found !== undefined) return found;
  const amount = { whole: integralCpus(text), isZero: milliValue(parseQuantity(text)) === 0 };
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(text, amount);
  return amount;
}

/** integralCpus with a cache. @throws ParseError if the text is not a quantity */
export function wholeCpus(text: string): number | undefined {
  return amountOf(text).whole;
}

/** Whether an amount is zero, rounded up to thousandths. @throws ParseError if the text is not a quantity */
export function isZeroAmount(text: string): boolean {
  return amountOf(text).isZero;
}
