import fc from 'fast-check';

/** A change of a text: at which place, which, with what. */
interface Change {
  readonly how: 'insert' | 'replace' | 'delete' | 'double' | 'repeat' | 'cut';
  readonly at: number;
  readonly length: number;
  readonly text: string;
}

/** Characters that parsers trip over: ends, signs, other scripts' digits, halves of pairs, controls. */
const ODD = [
  '',
  ' ',
  '\n',
  '\t',
  '\0',
  '-',
  '+',
  ',',
  ':',
  '^',
  '=',
  '"',
  "'",
  '\\',
  '[',
  ']',
  '{',
  '}',
  '/',
  '@',
  '#',
  '$',
];
const ODDER = [
  '0',
  '-1',
  '65535',
  '65536',
  '4294967296',
  '1e9',
  '0x1',
  '٣',
  '\ud800',
  '\u2028',
  'é',
  '__proto__',
  'null',
  'all',
];
const MOST_REPEATS = 2000;
/** Longer texts show nothing new and cost time. */
const LONGEST = 200_000;

const change: fc.Arbitrary<Change> = fc.record({
  how: fc.constantFrom('insert', 'replace', 'delete', 'double', 'repeat', 'cut'),
  at: fc.nat(),
  length: fc.integer({ min: 1, max: 16 }),
  text: fc.oneof(fc.constantFrom(...ODD, ...ODDER), fc.string({ unit: 'binary', maxLength: 4 })),
});

/**
 * Texts that are almost right: from a grammar or a corpus, as they are or with a few changes; and now and then any text.
 */
export function almost(...sources: readonly (fc.Arbitrary<string> | readonly string[])[]): fc.Arbitrary<string> {
  const right = fc.oneof(...sources.map((source) => ('generate' in source ? source : fc.constantFrom(...source))));
  return fc.oneof(
    { weight: 3, arbitrary: right },
    { weight: 6, arbitrary: fc.tuple(right, fc.array(change, { minLength: 1, maxLength: 4 })).map(changed) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  );
}

function changed([text, changes]: [string, readonly Change[]]): string {
  return changes.reduce(apply, text).slice(0, LONGEST);
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
      return head + piece.repeat(at % MOST_REPEATS) + tail;
    case 'cut':
      return head;
  }
}
