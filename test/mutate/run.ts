import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createRandom, type Random } from '../lab/random.ts';
import { root } from '../support/bundles.ts';
import { commandLine, exitOnSignals, newSeed } from '../support/command-line.ts';
import { type Copy, createCopy } from './copy.ts';
import { type Mutant, mutantsOf, mutated, probed } from './mutants.ts';

const USAGE = `npm run mutate -- <folder or file> ... [options]

Changes the sources below these folders in one place at a time, and runs the tests that reach the place: at least one should
fail. Prints the changes that no test noticed.

  --sample <number>  changes to try of each folder that is named (default 100; 0: all)
  --seed <number>    of the sample
  --tests <folder>   of test/, may be repeated: where tests are looked for (default: the folder of the same name)
  --least <number>   percent of the changes that must be noticed; below that it ends with 1
  --result <file>    write the changes and what became of them, as JSON
  --help

Ends with 0; with 1 if fewer were noticed than --least, or the tests fail without any change; with 2 on wrong options.`;

const { positionals, values, refuse, wholeNumber } = commandLine(
  USAGE,
  {
    sample: { type: 'string' },
    seed: { type: 'string' },
    tests: { type: 'string', multiple: true },
    least: { type: 'string' },
    result: { type: 'string' },
  },
  true,
);
if (positionals.length === 0) refuse('name a folder with sources, or a file');
const sample = wholeNumber('sample', 0) ?? 100;
const seed = wholeNumber('seed', 0) ?? newSeed();
const least = wholeNumber('least', 0) ?? 0;

/** Seconds for tests that a change has made endless. */
const LONGEST = 600;

/** A mutant of a file, with a number of its own. */
type Placed = Mutant & { readonly id: number; readonly file: string };

interface Judged extends Placed {
  readonly outcome: 'noticed' | 'survived' | 'not reached';
}

exitOnSignals();
const copy = createCopy();
process.once('exit', () => copy.remove());
const judged: Judged[] = [];
console.log(`seed ${seed}`);
for (const folder of positionals) judged.push(...(await judgeFolder(folder)));
if (values.result !== undefined) await writeFile(values.result, JSON.stringify(judged, undefined, 2));
const all = scoreOf(judged);
console.log(`${all.noticed} of ${judged.length} changes noticed, ${all.percent.toFixed(1)} %`);
process.exit(all.percent < least ? 1 : 0);

async function judgeFolder(folder: string): Promise<Judged[]> {
  const placed = drawn(await sourcesOf(folder), createRandom(seed));
  const tests = await testsOf(values.tests ?? [folder.split('/')[0] ?? '']);
  console.log(`${folder}: ${placed.length} changes, ${tests.length} test files`);
  const reached = await probe(placed, tests);
  const found: Judged[] = [];
  for (const one of placed) {
    const outcome = await judge(one, reached.get(one.id) ?? []);
    found.push({ ...one, outcome });
    if (outcome !== 'noticed') console.log(`${outcome}: ${describe(one)}`);
  }
  const { noticed, percent } = scoreOf(found);
  console.log(`${folder}: ${noticed} of ${found.length} noticed, ${percent.toFixed(1)} %`);
  return found;
}

function scoreOf(list: readonly Judged[]) {
  const noticed = list.filter(({ outcome }) => outcome === 'noticed').length;
  return { noticed, percent: list.length === 0 ? 100 : (100 * noticed) / list.length };
}

function describe({ file, line, operator, start, end }: Placed): string {
  const was = readFileSync(join(root, file), 'utf8').slice(start, end).replaceAll(/\s+/g, ' ');
  return `${file}:${line} ${operator}: ${was.length > 100 ? `${was.slice(0, 100)}…` : was}`;
}

async function sourcesOf(folder: string): Promise<string[]> {
  const path = join(root, folder);
  if (!existsSync(path)) refuse(`${folder}: there is no such folder or file`);
  if (folder.endsWith('.ts')) return [folder];
  const names = await readdir(path, { recursive: true });
  return names.filter((name) => name.endsWith('.ts') && !/(^|\/)gen\//.test(name)).map((name) => join(folder, name));
}

async function testsOf(folders: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const folder of folders) {
    const path = join(root, 'test', folder);
    if (!existsSync(path)) refuse(`--tests ${folder}: there is no such folder in test/`);
    for (const name of await readdir(path, { recursive: true }))
      if (name.endsWith('.test.ts')) found.push(join(folder, name));
  }
  return found.sort();
}

/** A sample of all mutants of the files, in the order of the files. */
function drawn(files: readonly string[], random: Random): Placed[] {
  const every = files.flatMap((file) => mutantsOf(copy.read(file)).map((one) => ({ ...one, file })));
  const placed = every.map((one, id) => ({ ...one, id }));
  if (sample === 0 || placed.length <= sample) return placed;
  const keys = new Map(placed.map(({ id }) => [id, random.below(2 ** 30)]));
  const chosen = placed.toSorted((a, b) => (keys.get(a.id) ?? 0) - (keys.get(b.id) ?? 0)).slice(0, sample);
  return chosen.sort((a, b) => a.id - b.id);
}

/** Runs all tests once on sources with probes. @returns the test files that reach each mutant, by its number */
async function probe(placed: readonly Placed[], tests: readonly string[]): Promise<Map<number, string[]>> {
  const files = [...new Set(placed.map(({ file }) => file))];
  const before = new Map(files.map((file) => [file, copy.read(file)]));
  const target = join(copy.directory, 'probes.json');
  try {
    for (const [file, text] of before) {
      copy.write(
        file,
        probed(
          text,
          placed.filter((one) => one.file === file),
        ),
      );
    }
    const status = await play(copy, tests, { PLUMBLINE_PROBES: target });
    if (status !== 0) {
      console.error('the tests fail without any change');
      process.exit(1);
    }
  } finally {
    for (const [file, text] of before) copy.write(file, text);
  }
  const reached = new Map<number, string[]>();
  const entries = JSON.parse(readFileSync(target, 'utf8')) as [string, number[]][];
  for (const [file, ids] of entries) {
    // What is reached while files are loaded is reached by every test.
    for (const id of ids) reached.set(id, file === '' ? [...tests] : [...(reached.get(id) ?? []), file]);
  }
  return reached;
}

async function judge(one: Placed, tests: readonly string[]): Promise<Judged['outcome']> {
  if (tests.length === 0) return 'not reached';
  const text = copy.read(one.file);
  copy.write(one.file, mutated(text, one));
  try {
    return (await play(copy, tests)) === 0 ? 'survived' : 'noticed';
  } finally {
    copy.write(one.file, text);
  }
}

/** Runs test files in the copy. @returns the exit status; 1 for tests that did not end */
function play({ directory }: Copy, tests: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<number> {
  const args = ['--import', 'tsx', join(directory, 'test/mutate/play.ts'), ...tests];
  const child = spawn(process.execPath, args, {
    cwd: directory,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', env['PLUMBLINE_PROBES'] === undefined ? 'ignore' : 'inherit'],
    timeout: LONGEST * 1000,
    killSignal: 'SIGKILL',
  });
  return new Promise((resolve) => child.once('close', (status) => resolve(status ?? 1)));
}
