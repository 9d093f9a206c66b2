import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { parse } from '@babel/parser';
import { root } from '../support/bundles.ts';
import { filesOfCheckout } from '../support/checkout.ts';
import { MAX_SENTENCE_WORDS, PATTERNS, type StyleRule, WORDS } from './words.ts';

export interface StyleFault {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  readonly use: string;
}

/** These quote the words: the list itself, its page and its test. What is generated is judged where it comes from. */
const SKIPPED = [
  'test/style/',
  'test/docs/style.test.ts',
  'docs/maintainers/style.md',
  'docs/maintainers/benchmarks.md',
  '/gen/',
  'manifests/chart/plumbline/templates/',
];

function broken(file: string, pieces: readonly Prose[], rules: readonly StyleRule[]): StyleFault[] {
  return pieces.flatMap(({ line, text }) =>
    rules.flatMap(({ phrase, use }) =>
      [...text.matchAll(phrase)].map((match) => {
        const before = text.slice(0, match.index).split('\n').length - 1;
        return { file, line: line + before, text: match[0].toLowerCase(), use };
      }),
    ),
  );
}

/** What is wrong with a page of the documentation. */
export function faultsOfPage(file: string, page: string): StyleFault[] {
  const long = sentencesOfMarkdown(page).filter(({ text }) => text.trim().split(/\s+/).length > MAX_SENTENCE_WORDS);
  return [
    ...broken(file, proseOfMarkdown(page), [...WORDS, ...PATTERNS]),
    ...long.map(({ line, text }) => ({
      file,
      line,
      text: `a sentence of ${text.trim().split(/\s+/).length} words: ${text.trim().slice(0, 60)}…`,
      use: `at most ${MAX_SENTENCE_WORDS}: make it two`,
    })),
  ];
}

/** `one` as the name of anything but the parameter of a callback with one expression. */
const VAGUE_NAME = /\b(?:const|let) one\b|\bfunction \w+\([^)]*\bone\b|\bone\b[^()=>]*\)(?:: [^=]+)? => \{/g;

/** What writes objects, Events or messages that are kept: an age would stay what it was. */
const WRITERS = /^(?:kube|model|node-agent|scheduler-plugin|webhook)\//;
const STORED_AGE = /\}(?: \w+)? ago\b/g;

function faultsOfSource(file: string, source: string): StyleFault[] {
  const extension = extname(file);
  const isProduct = !/^(?:test|bench)\//.test(file);
  const vague = isProduct && ['.ts', '.tsx'].includes(extension) ? [...source.matchAll(VAGUE_NAME)] : [];
  const pieces = ['.ts', '.tsx'].includes(extension)
    ? proseOfSource(source, extension === '.tsx')
    : proseOfHashComments(source);
  return [
    ...broken(file, pieces, [...WORDS, ...PATTERNS]),
    ...vague.map(({ index }) => ({
      file,
      line: source.slice(0, index).split('\n').length,
      text: 'one',
      use: 'the name of the thing',
    })),
    ...(WRITERS.test(file) ? [...source.matchAll(STORED_AGE)] : []).map(({ index }) => ({
      file,
      line: source.slice(0, index).split('\n').length,
      text: 'ago',
      use: 'the time itself: an age in a text that is kept stays what it was',
    })),
  ];
}

export function faultsOfCheckout(): StyleFault[] {
  const files = filesOfCheckout().filter((file) => !SKIPPED.some((skipped) => file.includes(skipped)));
  return files.flatMap((file) => {
    const extension = extname(file);
    if (!['.md', '.ts', '.tsx', '.yaml', '.sh'].includes(extension)) return [];
    const text = readFileSync(join(root, file), 'utf8');
    return extension === '.md' ? faultsOfPage(file, text) : faultsOfSource(file, text);
  });
}

/** A piece of text that a person reads, with the line it begins on, from 1. */
interface Prose {
  readonly line: number;
  readonly text: string;
}

const lineAt = (text: string, at: number) => text.slice(0, at).split('\n').length;
const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ');

/** A piece for each line: no code, no link targets, no generated parts (they are judged where they come from). */
function proseOfMarkdown(page: string): Prose[] {
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

/** The sentences of paragraphs, list items and cells of tables. Code counts as one word. */
function sentencesOfMarkdown(page: string): Prose[] {
  const marked = page.replaceAll(/`[^`\n]*`/g, 'code').replaceAll(/"[^"\n]*"/g, 'quote');
  const prose: Prose[] = [];
  let paragraph: { line: number; text: string } | undefined;
  const end = () => {
    if (paragraph === undefined) return;
    const { line, text } = paragraph;
    for (const sentence of text.split(/(?<=[.!?:;])\s+/)) prose.push({ line, text: sentence });
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
  return prose;
}

/** A name such as `webhook.rss-over-pepr-same-run`: one word with a hyphen, dot, colon, slash or digit in it. */
const isIdentifier = (text: string) => /^\S*\w[-._:/\d]\w\S*$/.test(text);

function proseOfSource(source: string, isJsx: boolean): Prose[] {
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

function proseOfHashComments(text: string): Prose[] {
  return text.split('\n').flatMap((line, i) => {
    const [, comment] = /(?:^|\s)#(.*)$/.exec(line) ?? [];
    return comment === undefined ? [] : { line: i + 1, text: comment };
  });
}
