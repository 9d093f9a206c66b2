import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from '../support/command-line.ts';
import { countOf, faultsIn, folderOf } from './check.ts';

const USAGE = `npm run lint:style [-- options]

Checks the words and sentences of pages, comments and string literals against test/style/words.ts. Each folder has a budget of
faults in test/style/budget.json; a folder without an entry has none. docs/maintainers/style.md explains the rules.

  --lower           write smaller budgets where folders have fewer faults now; never larger ones
  --list <folder>   print every fault of a folder, budget or not
  --help

Ends with 1 if a folder has more faults than its budget, with 2 on a wrong argument.`;

const ROOT = join(import.meta.dirname, '../..');
const BUDGET = join(import.meta.dirname, 'budget.json');

const { values: flags } = commandLine(
  USAGE,
  { lower: { type: 'boolean', default: false }, list: { type: 'string' } },
  false,
);
const budget = JSON.parse(readFileSync(BUDGET, 'utf8')) as Record<string, number>;
const faults = faultsIn(ROOT);
const counts = countOf(faults);

const over = Object.keys(counts).filter((folder) => (counts[folder] ?? 0) > (budget[folder] ?? 0));
const wanted = flags.list === undefined ? over : [flags.list];
for (const { file, line, text, use } of faults.filter((one) => wanted.includes(folderOf(one.file)))) {
  console.error(`${file}:${line}: "${text}": ${use}`);
}
for (const folder of over) {
  console.error(
    `${folder}: ${counts[folder]} style faults, its budget is ${budget[folder] ?? 0} (docs/maintainers/style.md)`,
  );
}
if (flags.lower) {
  const lowered = Object.entries(budget)
    .map(([folder, most]) => [folder, Math.min(most, counts[folder] ?? 0)] as const)
    .filter(([, most]) => most > 0);
  writeFileSync(BUDGET, `${JSON.stringify(Object.fromEntries(lowered), null, 2)}\n`);
} else {
  const less = Object.keys(budget).filter((folder) => (counts[folder] ?? 0) < (budget[folder] ?? 0));
  if (less.length > 0)
    console.log(`fewer style faults than the budget in ${less.join(', ')}: npm run lint:style -- --lower`);
}
process.exit(over.length > 0 ? 1 : 0);
