import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { trackedFiles } from './tracked-files.ts';

const PAGE = 'docs/maintainers/decisions.md';
const TEXT = readFileSync(join(root, PAGE), 'utf8');
/** Words of a decision with its heading. */
const MIN_WORDS = 60;
const MAX_WORDS = 130;

const sectionsOf = (text: string) => text.split(/^## /m).slice(1);
const numberOf = (section: string) => /^ADR (\d{4}): /.exec(section)?.[1];

/** Faults in the form of a decision. */
function faultsOf(section: string): string[] {
  const [heading = '', ...body] = section.split('\n');
  const words = section.split(/\s+/).length;
  const faults: string[] = [];
  if (!/^ADR \d{4}: \S+( \S+){2,}[^.]$/.test(heading)) faults.push(`${heading}: not "ADR NNNN: the decision"`);
  if (words < MIN_WORDS || words > MAX_WORDS) faults.push(`${heading}: ${words} words`);
  if (!/\*\*Rejected:\*\*\s+\S/.test(body.join('\n'))) faults.push(`${heading}: no rejected alternative`);
  return faults;
}

/** Numbers in references such as "ADR 0022", with the file. */
function references(): (readonly [file: string, number: string])[] {
  return trackedFiles('*.md', '*.ts', '*.tsx', '*.yaml', '*.c', '*.sh')
    .filter((file) => file !== PAGE && !file.startsWith('test/docs/'))
    .flatMap((file) =>
      [...readFileSync(join(root, file), 'utf8').matchAll(/\bADR (\d{4})\b/g)].map(
        ([, number = '']) => [file, number] as const,
      ),
    );
}

describe(PAGE, () => {
  const numbers = sectionsOf(TEXT).map(numberOf);

  it('has decisions in the order of their numbers', () => {
    assert.ok(numbers.length > 20);
    assert.deepEqual(numbers, [...new Set(numbers)].sort());
  });

  for (const section of sectionsOf(TEXT)) {
    it(`ADR ${numberOf(section)} has a title, a reason and a rejected alternative`, () =>
      assert.deepEqual(faultsOf(section), []));
  }

  it('has every decision that code and pages refer to', () => {
    const referenced = references();
    assert.ok(referenced.length >= 5, `${referenced.length}`);
    assert.deepEqual(
      referenced.filter(([, number]) => !numbers.includes(number)),
      [],
    );
  });
});
