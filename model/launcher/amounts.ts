import { integralCpus, milliValue, parseQuantity } from '../quantity.ts';

/** What the rules about containers ask of an amount. */
interface Amount {
  /** The number of CPUs if it is whole, else undefined. */
  readonly whole: number | undefined;
  readonly isZero: boolean;
}

/** Pods are full of the same few amounts, and each is asked about several times; reading one costs big numbers. */
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

/** integralCpus, remembered. @throws ParseError if the text is no quantity */
export function wholeCpus(text: string): number | undefined {
  return amountOf(text).whole;
}

/** Whether an amount is zero to the precision that counts. @throws ParseError if the text is no quantity */
export function isZeroAmount(text: string): boolean {
  return amountOf(text).isZero;
}
