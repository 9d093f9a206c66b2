import { existsSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import Mocha from 'mocha';
import { runLanes, type Tally } from './lanes.ts';
import { endAllAtExit } from './support/children.ts';
import { commandLine, exitOnSignals } from './support/command-line.ts';
import { absentParts, missingParts, REQUIREMENTS } from './support/parts.ts';
import { notShown, promisesOf } from './support/promises.ts';
import { failOnUnhandledRejections } from './support/unhandled-rejections.ts';

const USAGE = `npm test [-- folder or file ...] [options]

Runs every test below these folders, or in these files, of test/ (default: all). What a part is missing for is skipped, and
said at the end: npm run test:setup installs what Debian has. Files named *.long.ts take minutes and run only by their own
name. The last line is the count.

  --require <parts>  fail at once where one of these parts is missing: packaged (what Debian and npm have) or all
  --lanes            run all tests in two processes side by side (test/lanes.ts): for two or more free processors
  --result <file>    write what the run comes to, as JSON
  --help

Ends with 0 if every test passed, with 1 if one failed, there was none to run or a required part is missing, with 2 on an argument that names nothing.`;

/** Characters of a failure's message that are repeated at the end. */
const MAX_MESSAGE = 1000;

/** Files that took less than so many seconds are not listed. */
const LONG = 20;

const {
  positionals: folders,
  values: flags,
  refuse,
} = commandLine(
  USAGE,
  { lanes: { type: 'boolean', default: false }, require: { type: 'string' }, result: { type: 'string' } },
  true,
);
const required = REQUIREMENTS.find((one) => one === flags.require);
if (flags.require !== undefined && required === undefined) {
  refuse(`--require: ${flags.require} is none of ${REQUIREMENTS.join(', ')}`);
}
const absent = required === undefined ? [] : absentParts(required);
if (absent.length > 0) {
  for (const line of absent) console.error(line);
  process.exit(1);
}
// An exit, so that what the tests started is ended with it.
endAllAtExit();
exitOnSignals();
if (flags.lanes) {
  if (folders.length > 0) refuse('--lanes runs all tests: name no folder');
  conclude(await runLanes(import.meta.filename), true);
} else {
  conclude(await runHere(), folders.length === 0);
}

/** Prints what the run came to, and ends with it. */
function conclude(tally: Tally, everything: boolean): never {
  const { passes, failures, failed, pending, missing } = tally;
  const long = tally.seconds.filter(([, seconds]) => seconds >= LONG).slice(0, 20);
  for (const [file, seconds] of long) console.log(`${seconds.toFixed(0).padStart(5)} s  ${file}`);
  for (const line of missing) console.log(line);
  if (everything) for (const line of unshownPromises(tally)) console.log(line);
  for (const line of failed) console.log(line);
  if (flags.result !== undefined) writeFileSync(flags.result, JSON.stringify(tally));
  console.log(`${passes} passed, ${failures} failed, ${pending} skipped`);
  process.exit(failures > 0 || passes + pending === 0 ? 1 : 0);
}

/** Promises of docs/maintainers/conformance.md that this run has not shown, as parts are missing. */
function unshownPromises({ passed }: Tally): string[] {
  return notShown(promisesOf('docs/maintainers/conformance.md'), new Map(passed)).map(
    ({ name, file, title }) =>
      `not shown in this run: promise ${name} of docs/maintainers/conformance.md (${file}: ${title})`,
  );
}

/** Runs the tests of the folders and files that were named in this process. */
async function runHere(): Promise<Tally> {
  failOnUnhandledRejections();
  // Ends a test that hangs, on the busiest machine.
  const mocha = new Mocha({ timeout: 300_000, forbidOnly: true, reporter: process.env.CI ? 'dot' : 'spec' });
  for (const folder of folders.length > 0 ? folders : ['']) {
    if (!existsSync(join(import.meta.dirname, folder))) {
      console.error(`${folder}: no such folder or file in test/`);
      process.exit(2);
    }
    for (const file of await testFiles(join(import.meta.dirname, folder))) mocha.addFile(file);
  }
  await mocha.loadFilesAsync();
  return new Promise((resolve) => {
    const passed = new Map<string, string[]>();
    const failed: string[] = [];
    const seconds = new Map<string, number>();
    const runner = mocha.run((failures) => {
      const { passes = 0, pending = 0 } = runner.stats ?? {};
      const sorted = [...seconds].sort(([, a], [, b]) => b - a);
      resolve({ passes, failures, failed, pending, passed: [...passed], seconds: sorted, missing: missingParts() });
    });
    runner.on('pass', (test) => {
      const file = relative(import.meta.dirname, test.file ?? '').replace(/\.test\.ts$/, '');
      passed.set(file, [...(passed.get(file) ?? []), test.fullTitle()]);
    });
    runner.on('fail', (test, error: Error) => {
      const file = relative(import.meta.dirname, test.file ?? '');
      failed.push(`failed: ${file}: ${test.fullTitle()}: ${error.message.slice(0, MAX_MESSAGE)}`);
    });
    let started = performance.now();
    runner.on('suite', ({ parent }) => {
      if (parent?.root) started = performance.now();
    });
    // With its hooks.
    runner.on('suite end', ({ parent, file }) => {
      if (!parent?.root || file === undefined) return;
      const name = relative(import.meta.dirname, file);
      seconds.set(name, (seconds.get(name) ?? 0) + (performance.now() - started) / 1000);
    });
  });
}

async function testFiles(folder: string): Promise<string[]> {
  if (/\.(test|long)\.ts$/.test(folder)) return [folder];
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
