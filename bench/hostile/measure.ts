import { paced } from '../support/pace.ts';
import { type BenchResult, summary } from '../support/timing.ts';

/** One input as its parser gets it. */
export interface Input {
  readonly bytes: number;
  /** Throws, or returns false, where the input is not accepted. */
  readonly parse: () => unknown;
}

/** A parser of foreign data, with an ordinary input and those that cost most of all that it accepts. */
export interface Parser {
  readonly name: string;
  readonly typical: Input;
  /** By what makes them expensive; made when they are measured, since some have megabytes. */
  readonly worst: Readonly<Record<string, () => Input>>;
  /** Time per byte of the worst input over that of the typical one. Default PER_BYTE. */
  readonly perByte?: number;
  /** Milliseconds of processor time. */
  readonly milliseconds: number;
}

/** Where a daemon parses one object of many between other work, and where it answers a call or reads a file. */
export const PER_OBJECT = 50;
export const PER_CALL = 100;
/** The largest object that the API server stores, or body that a server takes: decoding its JSON takes most of this. */
export const PER_LARGEST = 200;
/** What root alone writes on the node, read in one agent's thread. */
export const PER_LOCAL = 2000;
/** A file that a user gives to a command. */
export const PER_COMMAND = 10_000;

const PER_BYTE = 10;
const ROUNDS = 7;
/** Seconds of processor time for which a short input is repeated. */
const AT_LEAST = 0.03;
/** Seconds for which an input is repeated before measuring: the compiler optimises for that long. */
const WARM_UP = 0.4;

/**
 * Two results for each parser: `hostile.<name>` is the time per byte of the worst input over that of the typical one, and
 * `hostile.<name>-ms` the milliseconds of the worst. Which input is the worst of the given ones may differ: the most per
 * byte is that of a short text, the most milliseconds those of a long one.
 */
export async function hostileResults({ name, typical, worst, ...held }: Parser): Promise<BenchResult[]> {
  const inputs = new Map(Object.entries(worst).map(([what, input]) => [what, input()]));
  for (const [what, input] of [['typical', typical] as const, ...inputs]) {
    if ((await input.parse()) === false) throw new Error(`hostile.${name}: ${what} is not accepted`);
    await secondsPerCall(input, WARM_UP);
  }
  const ratios: number[] = [];
  const milliseconds: number[] = [];
  for (let round = 0; round < paced(ROUNDS); round++) {
    const base = (await secondsPerCall(typical)) / typical.bytes;
    let [perByte, longest] = [0, 0];
    for (const input of inputs.values()) {
      const seconds = await secondsPerCall(input);
      perByte = Math.max(perByte, seconds / input.bytes / base);
      longest = Math.max(longest, seconds * 1000);
    }
    ratios.push(perByte);
    milliseconds.push(longest);
  }
  return [
    summary(`hostile.${name}`, ratios, { most: held.perByte ?? PER_BYTE }),
    summary(`hostile.ms-${name}`, milliseconds, { most: held.milliseconds }),
  ];
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

/** A text that a parser gets as it is. */
export const textInput =
  (parse: (text: string) => unknown) =>
  (text: string): Input => ({ bytes: Buffer.byteLength(text), parse: () => parse(text) });

/** Bytes that a parser gets as they are. */
export const bytesInput =
  (parse: (bytes: Buffer) => unknown) =>
  (text: string | Buffer): Input => {
    const bytes = Buffer.from(text);
    return { bytes: bytes.length, parse: () => parse(bytes) };
  };

/** Pieces of a text, as many as fit into so many characters with what stands before and after them. */
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
