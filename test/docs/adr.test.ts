import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';

const FOLDER = join(root, 'docs/adr');
const FILES = readdirSync(FOLDER).filter((name) => name !== 'README.md');
const SECTIONS = ['Status', 'Context', 'Decision', 'Alternatives', 'Consequences'];
const STATUS = /^(?:Proposed|Accepted|Rejected|Superseded by \[\d{4}\]\(\d{4}-[a-z0-9-]+\.md\))$/;
/** Maximum lines of a record: about a printed page. */
const PAGE = 60;

const textOf = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const titleOf = (text: string) => /^# \d{4}: (.*)$/m.exec(text)?.[1] ?? '';
const sectionsOf = (text: string) =>
  text
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      heading: section.split('\n')[0] ?? '',
      body: section.split('\n').slice(1).join('\n').trim(),
    }));
const statusOf = (text: string) => sectionsOf(text).find(({ heading }) => heading === 'Status')?.body ?? '';

/** Faults in the form of a record. */
function faultsOf(name: string, text: string): string[] {
  const faults: string[] = [];
  const number = /^(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.md$/.exec(name)?.[1];
  if (number === undefined) faults.push('the name is not NNNN-words-of-the-title.md');
  if (!text.startsWith(`# ${number}: `)) faults.push(`the first line is not "# ${number}: title"`);
  const title = titleOf(text);
  if (title.split(' ').length < 5 || title.endsWith('.')) faults.push('the title does not state a decision');
  const sections = sectionsOf(text);
  const headings = sections.map(({ heading }) => heading).join(', ');
  if (headings !== SECTIONS.join(', ')) faults.push(`the sections are ${headings}, not ${SECTIONS.join(', ')}`);
  for (const { heading, body } of sections) if (body === '') faults.push(`${heading} is empty`);
  if (!STATUS.test(statusOf(text))) faults.push(`the status is "${statusOf(text)}"`);
  if (text.split('\n').length > PAGE) faults.push(`longer than ${PAGE} lines`);
  return faults;
}

describe('docs/adr', () => {
  for (const name of FILES) {
    it(`${name} has the form of a record`, () => assert.deepEqual(faultsOf(name, textOf(name)), []));
  }

  it('numbers are unique', () => {
    const numbers = FILES.map((name) => name.slice(0, 4));
    assert.deepEqual(
      numbers.filter((number, i) => numbers.indexOf(number) !== i),
      [],
    );
  });

  it('README.md lists every record in order, with its title and status', () => {
    const rows = textOf('README.md')
      .split('\n')
      .filter((line) => /^\| \[/.test(line));
    const expected = FILES.sort().map((name) => {
      const text = textOf(name);
      return `| [${name.slice(0, 4)}](${name}) | ${titleOf(text)} | ${statusOf(text)} |`;
    });
    assert.deepEqual(rows, expected);
  });

  it('links to records have targets', () => {
    const pages = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).filter((page) =>
      page.endsWith('.md'),
    );
    const links = pages.flatMap((page) =>
      [
        ...readFileSync(join(root, 'docs', page), 'utf8').matchAll(/\((?:(?:\.\.\/)*adr\/)?(\d{4}-[a-z0-9-]+\.md)/g),
      ].map((match) => `${page}: ${match[1]}`),
    );
    assert.ok(links.length > FILES.length);
    assert.deepEqual(
      links.filter((link) => !FILES.includes(link.split(': ')[1] ?? '')),
      [],
    );
  });
});

describe('the form of a record', () => {
  const [name = ''] = FILES;
  const good = textOf(name);

  for (const [what, changed] of [
    ['missing Alternatives', good.replace('## Alternatives', '## Considered')],
    ['sections in bold instead of headings', good.replace('## Context\n', '**Context.**')],
    ['an empty section', good.replace(/(## Context\n)[^#]*/, '$1\n')],
    ['a status of another kind', good.replace('Accepted', 'Done')],
    ['another number than its name', good.replace(/^# \d{4}/, '# 9999')],
    ['a title that only names a subject', good.replace(/^(# \d{4}: ).*/, '$1Claims')],
    ['more than a page', good + 'line\n'.repeat(PAGE)],
  ] as const) {
    it(`refuses ${what}`, () => assert.notDeepEqual(faultsOf(name, changed), []));
  }
});
