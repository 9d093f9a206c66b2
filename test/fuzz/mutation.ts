import fc from 'fast-check';

interface Change {
  readonly how: 'insert' | 'replace' | 'delete' | 'double' | 'repeat' | 'cut';
  readonly at: number;
  readonly length: number;
  readonly text: string;
}

/** Characters that confuse parsers: ends, signs, digits of other scripts, halves of pairs, control characters. */
const ODD = ['', ...' \n\t\0-+,:^="\'\\[]{}/@#$'];
const ODDER = [
  ...['0', '-1', '65535', '65536', '4294967296', '1e9', '0x1', '٣'],
  ...['\ud800', '\u2028', 'é', '__proto__', 'null', 'all'],
];
const MAX_REPEATS = 2000;
/** Longer texts show nothing new and take time. */
const MAX_CHARACTERS = 200_000;

const change: fc.Arbitrary<Change> = fc.record({
  how: fc.constantFrom('insert', 'replace', 'delete', 'double', 'repeat', 'cut'),
  at: fc.nat(),
  length: fc.integer({ min: 1, max: 16 }),
  text: fc.oneof(fc.constantFrom(...ODD, ...ODDER), fc.string({ unit: 'binary', maxLength: 4 })),
});

/** Almost valid texts: from a grammar or a corpus, unchanged or with a few changes; sometimes any text. */
export function almost(...sources: readonly (fc.Arbitrary<string> | readonly string[])[]): fc.Arbitrary<string> {
  const right = fc.oneof(...sources.map((source) => ('generate' in source ? source : fc.constantFrom(...source))));
  return fc.oneof(
    { weight: 3, arbitrary: right },
    { weight: 6, arbitrary: fc.tuple(right, fc.array(change, { minLength: 1, maxLength: 4 })).map(changed) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  );
}

function changed([text, changes]: [string, readonly Change[]]): string {
  return changes.reduce(apply, text).slice(0, MAX_CHARACTERS);
}

function apply(text: string, { how, at, length, text: other }: Change): string {
  const place = at % (text.length + 1);
  const [head, piece, tail] = [text.slice(0, place), text.slice(place, place + length), text.slice(place + length)];
  switch (how) {
    case 'insert':
      return head + other + piece + tail;
    case 'replace':
      return head + other + tail;
    case 'delete':
      return head + tail;
    case 'double':
      return head + piece + piece + tail;
    case 'repeat':
      return head + piece.repeat(at % MAX_REPEATS) + tail;
    case 'cut':
      return head;
  }
}

export interface Repeated {
  readonly head?: string;
  /** By its index, if pieces differ. */
  readonly piece: string | ((index: number) => string);
  readonly joint?: string;
  readonly tail?: string;
  /** The text that closes each piece at the end, for nesting. */
  readonly closing?: string;
}

/** Long runs of what parsers count, search or skip: digits, separators, escapes, brackets, quotes, blanks. */
const RUNS: readonly string[] = [
  ...'09,:;-^=.@/#[]{}"\'\\ \n\t\0é',
  ...['\\"', '\\u0041', '[]', '{}', '{"a":', '"a",', '0-', '- ', '\r\n'],
];
const LONG = 20;

/** Lengths up to the longest, with the same frequency for each order of magnitude. */
const lengthUpTo = (longest: number): fc.Arbitrary<number> =>
  fc.integer({ min: 0, max: 1000 }).map((part) => Math.floor(longest ** (part / 1000)));

/** The inputs, and some that take a parser long: one piece repeated, alone or inside an input, up to this length. */
export function withLong(
  inputs: fc.Arbitrary<string>,
  longest: number,
  ...repeated: readonly Repeated[]
): fc.Arbitrary<string> {
  const grown = fc.tuple(fc.constantFrom(...repeated, ...repeated, { piece: '0' }), lengthUpTo(longest)).map(grow);
  const within = fc
    .tuple(inputs, fc.constantFrom(...RUNS), lengthUpTo(longest), fc.nat())
    .map(([text, piece, length, at]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + piece.repeat(Math.ceil(length / piece.length)) + text.slice(place);
    });
  return fc.oneof(
    { weight: LONG - 1, arbitrary: inputs },
    { weight: 1, arbitrary: repeated.length === 0 ? within : fc.oneof(grown, within) },
  );
}

function grow([{ head = '', piece, joint = '', tail = '', closing = '' }, length]: [Repeated, number]): string {
  const pieces: string[] = [];
  for (let size = 0, i = 0; size < length; i++) {
    const next = typeof piece === 'string' ? piece : piece(i);
    pieces.push(next);
    size += next.length + joint.length + closing.length;
  }
  return head + pieces.join(joint) + closing.repeat(pieces.length) + tail;
}

export interface Stream {
  readonly text: string;
  /** The places where it is cut, as fractions of its length. */
  readonly cuts: readonly number[];
}

export const streamOf = (text: fc.Arbitrary<string>): fc.Arbitrary<Stream> =>
  fc.record({ text, cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 }) });

export function piecesOf(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...cuts.map((cut) => Math.floor(cut * bytes.length)), bytes.length].sort((a, b) => a - b);
  return places.map((to, i) => bytes.subarray(places[i - 1] ?? 0, to));
}
