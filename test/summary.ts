import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { root } from './support/bundles.ts';
import type { PagePromise } from './support/promises.ts';
import type { Failure, Tally } from './tally.ts';

const MAX_PRINTED_FAILURES = 3;
/** Further failures that are named, so that all fit on a screen; the details have the rest. */
const MAX_NAMED_FAILURES = 8;
/** Lines of a failure's message that are printed. */
const MAX_MESSAGE_LINES = 6;
/** Characters of such a line. */
const MAX_LINE_CHARACTERS = 240;
/** Files that took less time are not listed in the details. */
const MIN_LISTED_SECONDS = 5;

/** The details of the last run: slow files, skipped tests, promises that were not shown, complete failures. */
export const DETAILS = join(root, 'node_modules/.cache/plumbline/test-details.txt');

export function summaryLines(tally: Tally, unshown: readonly PagePromise[]): string[] {
  const skipped = tally.missing.map(([part, tests]) => `${nameOf(part)} (${tests})`);
  const details = relative(root, DETAILS);
  const more = tally.failed.length - MAX_PRINTED_FAILURES - MAX_NAMED_FAILURES;
  return [
    ...(skipped.length > 0
      ? [`skipped, because parts are missing: ${skipped.join(', ')}; how to install them: ${details}`]
      : []),
    ...(unshown.length > 0
      ? [`not shown in this run: ${unshown.length} promises of docs/maintainers/conformance.md: ${details}`]
      : []),
    ...tally.failed.slice(0, MAX_PRINTED_FAILURES).flatMap(failureLines),
    ...tally.failed
      .slice(MAX_PRINTED_FAILURES, MAX_PRINTED_FAILURES + MAX_NAMED_FAILURES)
      .map(({ file, title }) => `FAILED ${file}: ${firstLine(title)}`),
    ...(more > 0 ? [`… and ${more} more failed`] : []),
    ...(tally.failed.length > 0 ? [`complete messages and stacks: ${details}`] : []),
  ];
}

export function writeDetails(tally: Tally, unshown: readonly PagePromise[]): void {
  const slow = tally.seconds
    .filter(([, seconds]) => seconds >= MIN_LISTED_SECONDS)
    .toSorted(([, a], [, b]) => b - a)
    .map(([file, seconds]) => `${seconds.toFixed(0).padStart(5)} s  ${file}`);
  const sections = {
    'Failed tests': tally.failed.flatMap(({ file, title, message, stack }) => [
      `${file}: ${title}`,
      message,
      ...stack,
      '',
    ]),
    'Skipped tests': tally.missing.map(([part, tests]) => `${tests} tests need ${part}`),
    'Promises of docs/maintainers/conformance.md that this run did not show': unshown.map(
      ({ name, file, title }) => `${name} (${file}: ${title})`,
    ),
    'Slow files': slow,
  };
  mkdirSync(dirname(DETAILS), { recursive: true });
  const text = Object.entries(sections).map(
    ([title, lines]) => `${title}: ${lines.length || 'none'}\n${lines.join('\n')}`,
  );
  writeFileSync(DETAILS, `${text.join('\n\n')}\n`);
}

function failureLines({ file, title, message, stack }: Failure): string[] {
  const lines = message.split('\n').filter((line) => line.trim() !== '');
  const more = lines.length - MAX_MESSAGE_LINES;
  return [
    '',
    `FAILED ${file}: ${firstLine(title)}`,
    ...lines.slice(0, MAX_MESSAGE_LINES).map((line) => `  ${line.slice(0, MAX_LINE_CHARACTERS)}`),
    ...(more > 0 ? [`  … and ${more} more lines`] : []),
    ...stack.slice(0, 1).map((line) => `  ${line}`),
    `  again: npm test -- ${file}`,
  ];
}

const firstLine = (text: string): string => text.split('\n', 1)[0]?.slice(0, MAX_LINE_CHARACTERS) ?? '';

/** `Helm: put helm on the PATH` is about `Helm`. */
const nameOf = (part: string): string => part.split(': ', 1)[0] ?? part;
