import { existsSync, readFileSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { commandLine, exitOnSignals, newSeed } from '../support/command-line.ts';
import { createStatusLine } from '../support/status-line.ts';
import { type Copy, createCopy } from './copy.ts';
import { reasonOf } from './equivalents.ts';
import { asEquivalent, type Judged, judge, scoreOf } from './judge.ts';
import { nameOf, type Placed, placedMutants, shuffled } from './mutants.ts';
import { createPlayer } from './player.ts';
import { FailingTests, findReach } from './reach.ts';

const USAGE = `npm run mutate -- <folder or file> ... [options]

Changes the sources below these folders (TypeScript, and the C of native/cni) in one place at a time, in a copy, and runs the
tests that reach the place until one fails. Prints the changes that no test notices, and the share of those that one does.

  --sample <number>  changes to try of each folder that is named (default 100; 0: all)
  --seed <number>    of the sample: the same seed draws the same changes
  --tests <path>     of test/, may be repeated: where tests are looked for (default: the folder of the same name)
  --within <number>  seconds: test files that take longer are left out, so that less is noticed
  --quick            do not try a change that survives again in a new process, where nothing is kept from before
  --least <number>   percent of the changes that must be noticed; below that it ends with 1
  --result <file>    write the changes and their outcomes as JSON, after each
  --again <file>     try those that survived in this result of another run, instead of a sample
  --help

Changes that are listed in test/mutate/equivalents.json, with the reason, change nothing and do not count.
Ends with 0; with 1 if fewer were noticed than --least, or if tests fail without any change; with 2 on wrong options.`;

const { positionals, values, refuse, wholeNumber } = commandLine(
  USAGE,
  {
    sample: { type: 'string' },
    seed: { type: 'string' },
    tests: { type: 'string', multiple: true },
    within: { type: 'string' },
    quick: { type: 'boolean', default: false },
    least: { type: 'string' },
    result: { type: 'string' },
    again: { type: 'string' },
  },
  true,
);
if (positionals.length === 0) refuse('name a folder with sources, or a file');
const sample = (wholeNumber('sample', 0) ?? 100) || Number.POSITIVE_INFINITY;
const seed = wholeNumber('seed', 0) ?? newSeed();
const within = wholeNumber('within', 1);
const least = wholeNumber('least', 0) ?? 0;
const again = values.again === undefined ? undefined : survivorsIn(values.again);
const plans: { folder: string; sources: string[]; tests: string[] }[] = [];
for (const folder of positionals) {
  const sources = await sourcesOf(folder);
  if (sources.length === 0) refuse(`${folder}: there is no source in it`);
  plans.push({ folder, sources, tests: await testsOf(values.tests ?? [folder.split('/')[0] ?? '']) });
}

exitOnSignals();
const progress = createStatusLine(process.stdout);
process.once('exit', () => progress.end());
const judged: Judged[] = [];
progress.line(`seed ${seed}`);
try {
  for (const plan of plans) {
    const copy = createCopy();
    const remove = () => copy.remove();
    process.once('exit', remove);
    await judgeFolder(plan, copy);
    process.removeListener('exit', remove);
    remove();
  }
} catch (error) {
  if (!(error instanceof FailingTests)) throw error;
  console.error(error.message);
  process.exit(1);
}
progress.end();
const all = scoreOf(judged);
if (plans.length > 1) console.log(`${all.noticed} of ${all.counted} changes noticed, ${all.percent.toFixed(1)} %`);
process.exit(all.percent < least ? 1 : 0);

async function judgeFolder({ folder, sources, tests }: (typeof plans)[number], copy: Copy): Promise<void> {
  const player = createPlayer(copy);
  const every = sources.flatMap((file) => placedMutants(file, copy.read(file)));
  const drawn = shuffled(every, seed).filter((one) => again === undefined || again.has(nameOf(one)));
  // Extra candidates replace C changes that do not compile: the compiler checks them in their turn.
  const candidates = again === undefined ? drawn.slice(0, 2 * sample) : drawn;
  progress.line(
    `${folder}: ${every.length} changes, ${Math.min(sample, drawn.length)} of them, ${tests.length} test files`,
  );
  const reached = await findReach(copy, player, candidates, tests, within, (name, problem) => {
    if (problem === undefined) progress.status(`${folder}: what ${name} reaches`);
    else progress.line(`left out: ${name} ${problem}`);
  });
  const found: Judged[] = [];
  for (const one of reached) {
    if (found.filter(({ outcome }) => outcome !== 'invalid').length >= sample) break;
    const reason = reasonOf(one);
    const done = reason === undefined ? await judge(copy, player, one, values.quick) : asEquivalent(one);
    found.push(done);
    judged.push(done);
    if (values.result !== undefined) await writeFile(values.result, JSON.stringify(judged, undefined, 2));
    if (done.outcome === 'survived' || done.outcome === 'not reached')
      progress.line(`${done.outcome}: ${describe(done)}`);
    if (reason !== undefined) progress.line(`equivalent: ${describe(done)} (${reason})`);
    progress.status(
      `${folder}: ${found.length} of ${Math.min(sample, drawn.length)} tried, ${scoreOf(found).noticed} noticed`,
    );
  }
  player.end();
  progress.end();
  const { noticed, counted, percent } = scoreOf(found);
  const late = found.filter(({ outcome }) => outcome === 'late').length;
  const equivalent = found.filter(({ outcome }) => outcome === 'equivalent').length;
  progress.line(
    `${folder}: ${noticed} of ${counted} noticed, ${percent.toFixed(1)} % (${late} by tests that did not end; ${equivalent} more change nothing)`,
  );
}

function describe({ file, line, operator, was }: Placed): string {
  const text = was.replaceAll(/\s+/g, ' ');
  return `${file}:${line} ${operator}: ${text.length > 100 ? `${text.slice(0, 100)}…` : text}`;
}

/** The names of the survivors in the result of a run. */
function survivorsIn(file: string): ReadonlySet<string> {
  const read = (): Judged[] => {
    try {
      return JSON.parse(readFileSync(file, 'utf8')) as Judged[];
    } catch (error) {
      return refuse(`--again ${file}: ${(error as Error).message}`);
    }
  };
  const survived = read().filter(({ outcome }) => outcome === 'survived' || outcome === 'not reached');
  return new Set(survived.map(nameOf));
}

async function sourcesOf(folder: string): Promise<string[]> {
  if (!existsSync(join(root, folder))) refuse(`${folder}: there is no such folder or file`);
  if (/\.(ts|c)$/.test(folder)) return [folder];
  const names = await readdir(join(root, folder), { recursive: true });
  // Generated code and the fuzzing driver are not shipped in this form.
  const isSource = (name: string) => /\.(ts|c)$/.test(name) && !/(^|\/)(gen\/|fuzz\.c$)/.test(name);
  return names.filter(isSource).map((name) => join(folder, name));
}

async function testsOf(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) {
    if (!existsSync(join(root, 'test', path))) refuse(`test/${path}: there are no tests; name where with --tests`);
    if (path.endsWith('.test.ts')) {
      found.push(path);
      continue;
    }
    for (const name of await readdir(join(root, 'test', path), { recursive: true })) {
      if (name.endsWith('.test.ts')) found.push(join(path, name));
    }
  }
  return [...new Set(found)].sort();
}
