import { existsSync, writeFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import Mocha from 'mocha';
import { LANES, runLanes } from './lanes.ts';
import { checkLastRun, recordRun, TIERS, type TierName } from './last-run.ts';
import { summaryLines, writeDetails } from './summary.ts';
import { endAllAtExit } from './support/children.ts';
import { commandLine, exitOnSignals } from './support/command-line.ts';
import { absentParts, isInstalled, missingParts, notedVersions, REQUIREMENTS } from './support/parts.ts';
import { notShown, promisesOf } from './support/promises.ts';
import { countsOf, countsText, runTests, type Tally } from './tally.ts';

const USAGE = `npm test [-- folder or file ...] [options]

Runs the tests of these product folders (test/FOLDER.test.ts and all below test/FOLDER), or in these files of test/. Without any
it runs all that this machine can run, in ${LANES.length} processes (test/lanes.ts). Tests whose parts are missing are skipped; npm run test:setup installs what Debian has.
Files named *.long.ts take minutes and run only by their own name. Failures are printed last, each with the command that
repeats it; the last line is the count.

  --require <parts>  fail at once if one of these parts is missing: packaged (what Debian and npm have) or all
  --record           write test/TIER/last-run.md for each of ${Object.keys(TIERS).slice(0, 2).join(', ')} that ran whole without a failure
  --result <file>    write the result as JSON instead of a summary
  --help

Exits with 0 if every test passed, with 1 if one failed, there was none to run or a required part is missing, with 2 on an
argument that names nothing.`;

const OWN_TIERS: readonly TierName[] = ['real', 'kubevirt'];

const {
  positionals: folders,
  values: flags,
  refuse,
} = commandLine(
  USAGE,
  {
    record: { type: 'boolean', default: false },
    require: { type: 'string' },
    result: { type: 'string' },
  },
  true,
);
const required = REQUIREMENTS.find((name) => name === flags.require);
if (flags.require !== undefined && required === undefined) {
  refuse(`--require: ${flags.require} is none of ${REQUIREMENTS.join(', ')}`);
}
const absent = required === undefined ? [] : absentParts(required);
if (absent.length > 0) {
  for (const line of absent) console.error(line);
  process.exit(1);
}
// An exit, so that the processes that tests started end with it.
endAllAtExit();
exitOnSignals();
conclude(folders.length === 0 ? await runLanes(import.meta.filename) : await runHere());

function conclude(tally: Tally): never {
  const counts = countsOf(tally);
  if (flags.result === undefined) {
    const isWhole = folders.length === 0;
    const promises = isWhole ? promisesOf('docs/maintainers/conformance.md') : [];
    const unshown = notShown(promises, new Map(tally.passed));
    writeDetails(tally, unshown);
    for (const line of summaryLines(tally, unshown)) console.log(line);
    if (flags.record) for (const tier of OWN_TIERS) record(tier, tally);
    if (isWhole) for (const line of missedTiers()) console.log(line);
    console.log(countsText(counts));
  } else {
    writeFileSync(flags.result, JSON.stringify(tally));
  }
  process.exit(counts.failed > 0 || counts.passed + counts.skipped === 0 ? 1 : 0);
}

function record(tier: TierName, tally: Tally): void {
  const isWhole = folders.length === 0 || folders.includes(tier);
  const counts = countsOf(tally, `${tier}/`);
  if (!isWhole || counts.passed === 0) return;
  if (counts.failed === 0) recordRun(tier, countsText(counts), tally.versions);
  const result = counts.failed === 0 ? `recorded in test/${tier}/last-run.md` : 'not recorded, as tests failed';
  console.log(`${tier}: ${result}`);
}

/** A line for each tier that cannot run here: when it ran last, and whether its code has changed since. */
function missedTiers(): string[] {
  const isHere: Readonly<Record<TierName, boolean>> = {
    real: isInstalled('controlPlane'),
    kubevirt: isInstalled('controlPlane') && isInstalled('kubevirt'),
    lab: false,
    bench: false,
  };
  const missed = (Object.keys(TIERS) as TierName[]).filter((tier) => !isHere[tier]);
  return missed.map((tier) => `not run: ${checkLastRun(tier).line}`);
}

async function runHere(): Promise<Tally> {
  failOnUnhandledRejections();
  const Reporter = process.env['CI'] || flags.result !== undefined ? Mocha.reporters.Dot : Mocha.reporters.Spec;
  // The timeout ends a test that hangs, on the busiest machine. Failures are printed in the summary.
  const mocha = new Mocha({ timeout: 300_000, forbidOnly: true, reporter: withoutEpilogue(Reporter) });
  for (const folder of folders) {
    const files = await testFiles(join(import.meta.dirname, folder));
    if (files === undefined) {
      console.error(`${folder}: no such folder or file in test/`);
      process.exit(2);
    }
    for (const file of files) mocha.addFile(file);
  }
  await mocha.loadFilesAsync();
  return runTests(mocha, () => ({ missing: missingParts(), versions: notedVersions() }));
}

type Reporter = typeof Mocha.reporters.Base;

function withoutEpilogue(Base: Reporter): Reporter {
  return class extends Base {
    override epilogue(): void {
      console.log();
    }
  };
}

async function testFiles(folder: string): Promise<string[] | undefined> {
  if (/\.(test|long)\.ts$/.test(folder)) return existsSync(folder) ? [folder] : undefined;
  const ofFolder = [`${folder.replace(/\/$/, '')}.test.ts`].filter((file) => existsSync(file));
  if (!existsSync(folder)) return ofFolder.length > 0 ? ofFolder : undefined;
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const inside = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return [...ofFolder, ...inside];
}

/**
 * Makes a promise that is rejected and never awaited fail the running test. Mocha's command line does this; Mocha's API
 * only emits the rejection again without a listener, so that such a test would pass.
 */
function failOnUnhandledRejections(): void {
  process.on('unhandledRejection', (reason) => {
    throw reason;
  });
}
