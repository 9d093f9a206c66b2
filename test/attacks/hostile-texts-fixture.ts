/** Clears the screen, writes the clipboard (OSC 52), hides text, all with and without C1; then line ends and Unicode's. */
const CONTROLS =
  '\x1b[2J\x1b]52;c;ZWNobw==\x07\x1b[8m\u009b8m\u009d52;c;eA==\u009c\x7f\x08\t\u2028\u2029\u202e\u2066\u200f';
/** At the beginning of a line, it would be a line that a command seems to print. */
const INJECTED = 'INJECTED-LINE';
export const HOSTILE = `${CONTROLS}\r\n${INJECTED}\r${INJECTED}`;
/** A value that is also long. */
export const LONG = `${HOSTILE}${'long '.repeat(10_000)}${'x'.repeat(50_000)}`;

/** Colours that the program itself uses on a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for
const COLOURS = /\u001b\[(?:1|2|22|3[0-79]|9[0-7])m/g;

/** What of a terminal's output is not from the program: characters, or lines. Empty if nothing. */
export function strangeIn(output: string): string[] {
  const characters = output.replaceAll(COLOURS, '').match(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu) ?? [];
  const lines = output.split(/[\r\n\u2028\u2029]/).filter((line) => line.startsWith(INJECTED));
  return [...new Set(characters)]
    .filter((one) => one !== '\n')
    .map((one) => JSON.stringify(one))
    .concat(lines);
}

/** A text in a document, as value or as key, and the document with it changed. */
export interface Changed {
  /** Such as `/api/v1/pods.0.metadata.name`. */
  readonly path: string;
  readonly document: unknown;
}

/** The document once for each text in it, with that text changed. */
export const withEachText = (document: unknown, change: (text: string) => string): Changed[] =>
  textPaths(document).map((path) => ({
    path,
    document: withTexts(document, (text, at) => (at === path ? change(text) : text)),
  }));

/** The paths of all texts of a document; that of a key ends with `~`. */
export function textPaths(document: unknown): string[] {
  const paths: string[] = [];
  withTexts(document, (text, path) => {
    paths.push(path);
    return text;
  });
  return paths;
}

/** The document with every text in it changed, except keys. */
export const withEveryText = (document: unknown, change: (text: string) => string): unknown =>
  withTexts(document, (text, path) => (path.endsWith('~') ? text : change(text)));

/** The document with each text, value or key, replaced by what `change` returns. */
export function withTexts(document: unknown, change: (text: string, path: string) => string, path = ''): unknown {
  if (typeof document === 'string') return change(document, path);
  if (Array.isArray(document)) return document.map((item, i) => withTexts(item, change, `${path}.${i}`));
  if (!isRecord(document)) return document;
  const entries = Object.entries(document);
  return Object.fromEntries(
    entries.map(([key, value]) => [change(key, `${path}.${key}~`), withTexts(value, change, `${path}.${key}`)]),
  );
}

/** Instances of classes, such as sets of CPUs, have no texts of others. */
function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
