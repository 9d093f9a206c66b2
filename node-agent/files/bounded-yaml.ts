import { isNode, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { cut, quote } from '../../model/errors.ts';

/** The longest file that is read, in characters. Those of a node's administrator have a few thousand. */
export const MAX_YAML_BYTES = 64 * 1024;
/** Columns before a line's first word, and open brackets: they bound the nesting, since the parser recurses. */
const MAX_COLUMNS = 128;
const MAX_OPEN_BRACKETS = 64;
const TOO_INDENTED = new RegExp(`^[-?: \\t]{${MAX_COLUMNS + 1}}`, 'm');
/** Maximum number of aliases to resolve: each can expand to a whole tree. */
const MAX_ALIASES = 100;
/** Maximum length of an error, which may quote the text, in characters. */
const MAX_REASON_CHARACTERS = 200;

/** How the parsers of the kubelet read: YAML 1.1 (`yes` is true), and nothing after the first document. */
export const KUBELET_YAML = { version: '1.1', logLevel: 'silent' } as const;

/** Takes time linear in the length, whatever it contains; duplicate keys are an error. @throws Error, short */
export function parseBoundedYaml(text: string, reading: typeof KUBELET_YAML | object = {}): unknown {
  if (text.length > MAX_YAML_BYTES) throw new Error(`it has more than ${MAX_YAML_BYTES} characters`);
  assertShallow(text);
  const lineCounter = new LineCounter();
  // `prettyErrors: false` avoids a search in the text for each error; there may be as many errors as characters.
  const options = { uniqueKeys: false, prettyErrors: false, logLevel: 'error', lineCounter, ...reading } as const;
  const document = parseDocument(text, options);
  const refuse = (offset = 0, why: string): never => {
    const { line, col } = lineCounter.linePos(offset);
    throw new Error(`${cut(why.split('\n', 1)[0] ?? '', MAX_REASON_CHARACTERS)} at line ${line}, column ${col}`);
  };
  const [error] = document.errors;
  if (error !== undefined) refuse(error.pos[0], error.message);
  visit(document, {
    Alias(_key, { source, range }, path) {
      const isWithin = path.some((node) => isNode(node) && 'anchor' in node && node.anchor === source);
      if (isWithin) refuse(range?.[0], `the anchor ${quote(source)} contains itself`);
    },
    Map(_key, { items }) {
      const keys = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        if (keys.has(key.value)) refuse(key.range?.[0], `the key ${quote(String(key.value))} appears twice`);
        keys.add(key.value);
      }
    },
  });
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown;
  } catch (error) {
    throw new Error(cut((error as Error).message, MAX_REASON_CHARACTERS), { cause: error });
  }
}

/** It also counts brackets within quotes and comments, which errs on the safe side. */
function assertShallow(text: string): void {
  let open = 0;
  const isDeep = (bracket: string) => {
    open = Math.max(0, open + ('[{'.includes(bracket) ? 1 : -1));
    return open > MAX_OPEN_BRACKETS;
  };
  if (TOO_INDENTED.test(text) || text.match(/[[\]{}]/g)?.some(isDeep)) throw new Error('nested too deeply');
}
