import { ParseError } from './errors.ts';
import { resultOrNone } from './json.ts';

const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
const BINARY: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
const NANO = 1_000_000_000n;
/** Above this exponent the API server uses its own maximum; CPU and memory amounts are far smaller. */
const LARGEST_EXPONENT = 18;
const MAX_CHARACTERS = 64;
const TOO_MUCH = 'the amount is too large';

/** Exact to one billionth, rounded up beyond that. Source: k8s.io/apimachinery/pkg/api/resource/quantity.go. */
export interface Quantity {
  readonly nano: bigint;
}

/** In any notation: `9`, `9000m`, `9e0`, `0.5`, `1436Mi`. @throws ParseError */
export function parseQuantity(text: string): Quantity {
  if (text.length > MAX_CHARACTERS) throw new ParseError('quantity', text, TOO_MUCH);
  const match = /^([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:(n|u|m|k|M|G|T|P|E|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?$/.exec(
    text,
  );
  if (!match) throw new ParseError('quantity', text, 'expected a number with an optional suffix, as in 9, 500m or 8Gi');
  const [, sign, number = '', suffix = '', exponent] = match;
  const [whole = '', fraction = ''] = number.split('.');
  const digits = BigInt(whole + fraction);
  const power = (exponent === undefined ? (DECIMAL[suffix] ?? 0) : Number(exponent)) - fraction.length;
  if (power > LARGEST_EXPONENT) throw new ParseError('quantity', text, TOO_MUCH);
  const scaled = digits * NANO * 2n ** BigInt(BINARY[suffix] ?? 0);
  const nano = power >= 0 ? scaled * 10n ** BigInt(power) : divideUp(scaled, 10n ** BigInt(-power));
  return { nano: sign === '-' ? -nano : nano };
}

/** The amount in whole units, rounded up (Quantity.Value). */
export function wholeValue(quantity: Quantity): number {
  return Number(divideUp(quantity.nano, NANO));
}

/** The amount in thousandths, rounded up (Quantity.MilliValue). */
export function milliValue(quantity: Quantity): number {
  return Number(divideUp(quantity.nano, NANO / 1000n));
}

/**
 * Of the static CPU manager; undefined if it is not whole: such a container stays on the shared pool. @throws
 * ParseError
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, guaranteedCPUs.
 */
export function integralCpus(text: string): number | undefined {
  const quantity = parseQuantity(text);
  const value = wholeValue(quantity);
  return value * 1000 === milliValue(quantity) ? value : undefined;
}

/** Undefined if the text is not a quantity, or not whole. */
export function wholeOrNone(quantity: string): number | undefined {
  return resultOrNone(() => integralCpus(quantity));
}

function divideUp(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  return dividend % divisor > 0n ? quotient + 1n : quotient;
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/** Bytes for people: `1.5 GiB`. */
export function bytesText(bytes: number): string {
  const unit = Math.max(
    0,
    BYTE_UNITS.findLastIndex((_, power) => bytes >= 1024 ** power),
  );
  const value = bytes / 1024 ** unit;
  return `${Number(value.toFixed(value < 10 ? 1 : 0))} ${BYTE_UNITS[unit]}`;
}
