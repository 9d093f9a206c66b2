import { isQuick, paced } from '../support/pace.ts';
import { type BenchResult, summary } from '../support/timing.ts';

/** One input and its parser call. */
export interface Input {
  readonly bytes: number;
  /** Throws or returns false if the input is not accepted. */
  readonly parse: () => unknown;
}

/** A parser of foreign data, with a typical input and the most expensive inputs that it accepts. */
export interface Parser {
  readonly name: string;
  readonly typical: Input;
  /** By the property that makes them expensive; created when measured, because some have megabytes. */
  readonly worst: Readonly<Record<string, () => Input>>;
  /** Limit of the time per byte of the worst input relative to the typical one. Default PER_BYTE. */
  readonly perByte?: number;
  /** Limit in milliseconds of processor time. */
  readonly milliseconds: number;
}

/** For a daemon that parses one object of many between other work, and for one that serves a call or reads a file. */
export const PER_OBJECT = 50;
export const PER_CALL = 100;
/**
 * The largest object that the API server stores, or the largest body that a server accepts: most of this is decoding
 * its JSON.
 */
export const PER_LARGEST = 200;
/** Files that only root writes on the node, read in the thread of one agent. */
export const PER_LOCAL = 2000;
/** A file from a user for a command. */
export const PER_COMMAND = 4000;

const PER_BYTE = 10;
const ROUNDS = 7;
/** Rounds of inputs that take seconds. */
const ROUNDS_OF_SECONDS = 3;
/** Seconds of processor time for which a short input is repeated. */
const AT_LEAST = 0.03;
/** Seconds for which an input is repeated before measuring, so that the compiler optimizes. */
const WARM_UP = 0.4;
const QUICK_WARM_UP = 0.2;

/**
 * Two results for each parser: `hostile.<name>` is the time per byte of the worst input relative to the typical one,
 * and `hostile.<name>-ms` is the milliseconds of the worst one. The worst input may differ between both: short texts
 * have the largest time per byte, long ones the most milliseconds.
 */
export async function hostileResults({ name, typical, worst, ...held }: Parser): Promise<BenchResult[]> {
  const inputs = new Map(Object.entries(worst).map(([what, input]) => [what, input()]));
  const ratios = new Map([...inputs.keys()].map((what) => [what, [] as number[]]));
  const milliseconds = new Map([...inputs.keys()].map((what) => [what, [] as number[]]));
  await warmUp(name, 'typical', typical);
  let base = (await secondsPerCall(typical)) / typical.bytes;
  const add = (what: string, { bytes }: Input, seconds: number) => {
    ratios.get(what)?.push(seconds / bytes / base);
    milliseconds.get(what)?.push(seconds * 1000);
  };
  for (const [what, input] of inputs) {
    const seconds = await warmUp(name, what, input);
    // A call of seconds has warmed up the compiler by itself, and is a sample.
    if (seconds >= WARM_UP) add(what, input, seconds);
  }
  const rounds = held.milliseconds < PER_COMMAND ? paced(ROUNDS) : paced(ROUNDS_OF_SECONDS, 1);
  for (let round = 0; round < rounds; round++) {
    base = (await secondsPerCall(typical)) / typical.bytes;
    for (const [what, input] of inputs) {
      if ((milliseconds.get(what)?.length ?? 0) <= round) add(what, input, await secondsPerCall(input));
    }
  }
  return [
    worstOf(`hostile.${name}`, ratios, held.perByte ?? PER_BYTE),
    worstOf(`hostile.ms-${name}`, milliseconds, held.milliseconds),
  ];
}

/**
 * Calls the parser until the compiler has optimized it.
 * @returns seconds of processor time of the first call
 * @throws Error if it does not accept the input
 */
async function warmUp(name: string, what: string, input: Input): Promise<number> {
  const { user: before } = process.cpuUsage();
  if ((await input.parse()) === false) throw new Error(`hostile.${name}: ${what} is not accepted`);
  const seconds = (process.cpuUsage().user - before) / 1e6;
  const enough = isQuick() ? QUICK_WARM_UP : WARM_UP;
  if (seconds < enough) await secondsPerCall(input, enough);
  return seconds;
}

/**
 * The input with the largest median. The largest value of each round would be that of another input each time, after a
 * garbage collection.
 */
function worstOf(name: string, rounds: ReadonlyMap<string, readonly number[]>, most: number): BenchResult {
  const results = [...rounds].map(([what, values]) => ({ what, result: summary(name, values, { most }) }));
  const worst = results.reduce((a, b) => (b.result.ratio > a.result.ratio ? b : a));
  console.error(`# ${name}: ${worst.what}`);
  return worst.result;
}

/** Seconds of processor time that one call takes, in this process. */
async function secondsPerCall({ parse }: Input, atLeast = AT_LEAST): Promise<number> {
  for (let calls = 1; ; ) {
    const before = process.cpuUsage();
    for (let i = 0; i < calls; i++) {
      const result = parse();
      if (result instanceof Promise) await result;
    }
    const { user, system } = process.cpuUsage(before);
    const seconds = (user + system) / 1e6;
    if (seconds >= atLeast) return seconds / calls;
    calls = Math.max(calls * 2, Math.ceil((calls * atLeast) / Math.max(seconds, 1e-6)));
  }
}

/** A text for a parser. */
export const textInput =
  (parse: (text: string) => unknown) =>
  (text: string): Input => ({ bytes: Buffer.byteLength(text), parse: () => parse(text) });

/** Bytes for a parser. */
export const bytesInput =
  (parse: (bytes: Buffer) => unknown) =>
  (text: string | Buffer): Input => {
    const bytes = Buffer.from(text);
    return { bytes: bytes.length, parse: () => parse(bytes) };
  };

/** Repeats pieces up to a number of characters, including a prefix and a suffix. */
export function filled(
  longest: number,
  piece: string | ((index: number) => string),
  { head = '', joint = '', tail = '', most = Number.POSITIVE_INFINITY } = {},
): string {
  const pieces: string[] = [];
  let left = longest - head.length - tail.length;
  for (let i = 0; i < most; i++) {
    const next = typeof piece === 'string' ? piece : piece(i);
    left -= next.length + joint.length;
    if (left < 0) break;
    pieces.push(next);
  }
  return head + pieces.join(joint) + tail;
}
