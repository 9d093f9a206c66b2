import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { type Prose, proseOfHashComments, proseOfMarkdown, proseOfSource, sentencesOfMarkdown } from './prose.ts';
import { MAX_SENTENCE_WORDS, PATTERNS, type StyleRule, WORDS } from './words.ts';

/** A place where the style is not kept. */
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

/** What is wrong with the comments, strings and names of a source. */
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

/** All faults of the files that git tracks below a folder, and of new ones. */
export function faultsIn(root: string): StyleFault[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root });
  const files = listed
    .toString()
    .split('\0')
    .filter((file) => file !== '' && !SKIPPED.some((skipped) => file.includes(skipped)));
  return files.flatMap((file) => {
    const extension = extname(file);
    if (!['.md', '.ts', '.tsx', '.yaml', '.sh'].includes(extension)) return [];
    const text = readIfThere(join(root, file));
    return extension === '.md' ? faultsOfPage(file, text) : faultsOfSource(file, text);
  });
}

/** A file's text; none for one that git lists and that was removed. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
