import { parse } from '@babel/parser';

/** A piece of text that a person reads, with the line it begins on, from 1. */
export interface Prose {
  readonly line: number;
  readonly text: string;
}

const lineAt = (text: string, at: number) => text.slice(0, at).split('\n').length;
const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ');

/**
 * The prose of a Markdown page, one piece for each line: no code, no link targets, no generated parts (they are
 * judged where they come from).
 */
export function proseOfMarkdown(page: string): Prose[] {
  const text = page
    .replaceAll(/^(`{3,}|~{3,}).*\n[\s\S]*?^\1$/gm, blank)
    .replaceAll(/<!-- (?:begin|measured): [\s\S]*?<!-- end/g, blank)
    .replaceAll(/<!--[\s\S]*?-->/g, blank)
    // The last column of a table of promises quotes the title of a test.
    .replaceAll(/\| `[\w/-]+` [^|\n]*\|$/gm, blank)
    .replaceAll(/`[^`]*`/g, blank)
    .replaceAll(/\]\([^)\s]*\)/g, blank);
  return text
    .split('\n')
    .flatMap((line, i) => (/^ {4}\S/.test(line) || line.trim() === '' ? [] : { line: i + 1, text: line }));
}

/**
 * The sentences of a Markdown page: of paragraphs, list items and cells of tables.
 * Code counts as one word.
 */
export function sentencesOfMarkdown(page: string): Prose[] {
  const marked = page.replaceAll(/`[^`\n]*`/g, 'code').replaceAll(/"[^"\n]*"/g, 'quote');
  const found: Prose[] = [];
  let paragraph: { line: number; text: string } | undefined;
  const end = () => {
    if (paragraph === undefined) return;
    const { line, text } = paragraph;
    for (const sentence of text.split(/(?<=[.!?:;])\s+/)) found.push({ line, text: sentence });
    paragraph = undefined;
  };
  const lines = proseOfMarkdown(marked);
  for (const [i, { line, text }] of lines.entries()) {
    const gap = lines[i - 1]?.line !== line - 1;
    if (gap || /^\s*(?:[-*|#>]|\d+\. )/.test(text)) end();
    if (text.startsWith('|')) {
      for (const cell of text.split('|')) {
        paragraph = { line, text: cell.trim() };
        end();
      }
    } else {
      paragraph = { line: paragraph?.line ?? line, text: `${paragraph?.text ?? ''} ${text.trim()}` };
    }
  }
  end();
  return found;
}

/** A name such as `webhook.rss-over-pepr-same-run`: one word with a hyphen, dot, colon, slash or digit in it. */
const isIdentifier = (text: string) => /^\S*\w[-._:/\d]\w\S*$/.test(text);

/** The comments and string literals of a TypeScript source, without names. @throws SyntaxError if it cannot be parsed */
export function proseOfSource(source: string, isJsx: boolean): Prose[] {
  const { comments, tokens } = parse(source, {
    sourceType: 'module',
    plugins: isJsx ? ['typescript', 'jsx'] : ['typescript'],
    tokens: true,
  });
  const strings = (tokens ?? []) as { type: { label?: string }; value?: unknown; start: number }[];
  return [
    ...(comments ?? []).map(({ value, start }) => ({ line: lineAt(source, start ?? 0), text: value })),
    ...strings.flatMap(({ type, value, start }) =>
      (type.label === 'string' || type.label === 'template' || type.label === 'jsxText') &&
      !isIdentifier(String(value ?? ''))
        ? { line: lineAt(source, start), text: String(value ?? '') }
        : [],
    ),
  ];
}

/** The comments of a YAML file or a shell script. */
export function proseOfHashComments(text: string): Prose[] {
  return text.split('\n').flatMap((line, i) => {
    const [, comment] = /(?:^|\s)#(.*)$/.exec(line) ?? [];
    return comment === undefined ? [] : { line: i + 1, text: comment };
  });
}
