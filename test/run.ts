import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import Mocha from 'mocha';
import { commandLine, exitOnSignals } from './support/command-line.ts';
import { missingParts } from './support/parts.ts';
import { notShown, promisesOf } from './support/promises.ts';

const USAGE = `npm test [-- folder or file ...]

Runs every test below these folders, or in these files, of test/ (default: all). What a part is missing for is skipped, and
said at the end: npm run test:setup installs what Debian has. The last line is the count.

Ends with 0 if every test passed, with 1 if one failed or there was none to run, with 2 on an argument that names nothing.`;

const { positionals: folders } = commandLine(USAGE, {}, true);
// An exit, so that what the tests started is ended with it.
exitOnSignals();
const mocha = new Mocha({ timeout: 120_000, forbidOnly: true, reporter: process.env.CI ? 'dot' : 'spec' });
for (const folder of folders.length > 0 ? folders : ['']) {
  if (!existsSync(join(import.meta.dirname, folder))) {
    console.error(`${folder}: no such folder or file in test/`);
    process.exit(2);
  }
  for (const file of await testFiles(join(import.meta.dirname, folder))) mocha.addFile(file);
}
await mocha.loadFilesAsync();
const runner = mocha.run((failures) => {
  const { passes = 0, pending = 0, tests = 0 } = runner.stats ?? {};
  for (const line of slowest()) console.log(line);
  for (const line of missingParts()) console.log(line);
  if (folders.length === 0) for (const line of unshownPromises()) console.log(line);
  console.log(`${passes} passed, ${failures} failed, ${pending} skipped`);
  process.exit(failures > 0 || tests === 0 ? 1 : 0);
});

/** Full titles of the tests that passed, by file below test/, less `.test.ts`. */
const passed = new Map<string, string[]>();
runner.on('pass', (test) => {
  const file = relative(import.meta.dirname, test.file ?? '').replace(/\.test\.ts$/, '');
  const titles = passed.get(file) ?? [];
  titles.push(test.fullTitle());
  passed.set(file, titles);
});

/** Promises of docs/conformance.md that this run has not shown, as parts are missing. */
function unshownPromises(): string[] {
  return notShown(promisesOf('docs/conformance.md'), passed).map(
    ({ name, file, title }) => `not shown in this run: promise ${name} of docs/conformance.md (${file}: ${title})`,
  );
}

/** Seconds that each file took, with its hooks. */
const seconds = new Map<string, number>();
let started = performance.now();
runner.on('suite', ({ parent }) => {
  if (parent?.root) started = performance.now();
});
runner.on('suite end', ({ parent, file }) => {
  if (!parent?.root || file === undefined) return;
  seconds.set(file, (seconds.get(file) ?? 0) + (performance.now() - started) / 1000);
});

/** The files to look at when the run takes too long. */
function slowest(): string[] {
  return [...seconds]
    .filter(([, taken]) => taken >= 20)
    .sort(([, a], [, b]) => b - a)
    .slice(0, 20)
    .map(([file, taken]) => `${taken.toFixed(0).padStart(5)} s  ${relative(import.meta.dirname, file)}`);
}

async function testFiles(folder: string): Promise<string[]> {
  if (folder.endsWith('.test.ts')) return [folder];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
