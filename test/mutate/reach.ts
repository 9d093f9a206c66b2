import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { importsOf } from '../imports/graph.ts';
import type { Copy } from './copy.ts';
import type { Placed } from './mutants.ts';
import type { Player, TimedFile } from './player.ts';
import { NONE, switched } from './switches.ts';

/** A mutant with its number, and the test files that reach it. */
export interface Reached extends Placed {
  readonly id: number;
  /** The fastest first. */
  readonly tests: readonly TimedFile[];
  /** Files are loaded only once in a process: such a mutant needs a new one. */
  readonly atLoad: boolean;
}

/** Tests that fail without any change, and so show nothing. */
export class FailingTests extends Error {}

/** Seconds for a test file with an unknown duration. */
export const LONGEST = 900;

/** A C source that no compiler accepts, so that its build fails. */
const NO_C = '#error "changed"\n';

/**
 * Puts the mutants into the sources of the copy, each behind a switch, except those of C. Then runs all test files and
 * finds which ones reach which mutant. Code that is reached while files are loaded is reached by every test that
 * imports its file. C is reached by the tests that fail if it does not compile.
 * @param within the maximum seconds of a test file; longer ones are left out
 * @param onFile is called before each file, and with the problem after a file that is left out
 * @throws FailingTests
 */
export async function findReach(
  copy: Copy,
  player: Player,
  mutants: readonly Placed[],
  tests: readonly string[],
  within = LONGEST,
  onFile: (name: string, problem?: string) => void = () => undefined,
): Promise<Reached[]> {
  const numbered = mutants.map((one, id) => ({ ...one, id }));
  for (const [file, list] of grouped(numbered)) if (!isC(file)) copy.write(file, switched(copy.read(file), list));
  const sourcesInC = [...grouped(numbered).keys()].filter(isC);
  const atLoad = new Set<number>();
  const played: { test: TimedFile; reached: ReadonlySet<number>; buildsC: boolean; imports: ReadonlySet<string> }[] =
    [];
  for (const name of tests) {
    onFile(name);
    const answer = await player.time(name, within);
    if (answer.late && within < LONGEST) {
      onFile(name, `takes longer than ${within} s`);
      continue;
    }
    if (!answer.passed)
      throw new FailingTests(`${name} fails without any change: ${answer.failed ?? 'it does not end'}`);
    for (const id of answer.atLoad) atLoad.add(id);
    const test = { name, seconds: answer.seconds };
    const buildsC = sourcesInC.length > 0 && (await failsWith(copy, player, test, sourcesInC));
    played.push({ test, reached: new Set(answer.reached), buildsC, imports: importsBelow(copy, join('test', name)) });
  }
  played.sort((a, b) => a.test.seconds - b.test.seconds);
  return numbered.map((one) => {
    const comesTo = ({ reached, buildsC, imports }: (typeof played)[number]) =>
      isC(one.file) ? buildsC : reached.has(one.id) || (atLoad.has(one.id) && imports.has(one.file));
    return { ...one, atLoad: atLoad.has(one.id), tests: played.filter(comesTo).map(({ test }) => test) };
  });
}

export const isC = (file: string) => file.endsWith('.c');

async function failsWith(copy: Copy, player: Player, test: TimedFile, broken: readonly string[]): Promise<boolean> {
  const texts = new Map(broken.map((file) => [file, NO_C]));
  return withTexts(copy, texts, async () => !(await player.play(test, NONE)).passed);
}

function grouped<T extends Placed>(mutants: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of mutants) groups.set(one.file, [...(groups.get(one.file) ?? []), one]);
  return groups;
}

/** All files that a file imports, directly or indirectly, by their paths below the copy. */
function importsBelow({ directory }: Copy, file: string): ReadonlySet<string> {
  const found = new Set<string>();
  const open = [file];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next) || !/\.(ts|tsx|js|cjs)$/.test(next)) continue;
    found.add(next);
    const text = readFileSync(join(directory, next), 'utf8');
    open.push(...importsOf(next, text).flatMap(({ target, isPackage }) => (isPackage ? [] : [target])));
  }
  return found;
}

/** Runs work while files of the copy have other texts. */
export async function withTexts<T>(copy: Copy, texts: ReadonlyMap<string, string>, work: () => Promise<T>): Promise<T> {
  const before = [...texts.keys()].map((file) => [file, copy.read(file)] as const);
  try {
    for (const [file, text] of texts) copy.write(file, text);
    return await work();
  } finally {
    for (const [file, text] of before) copy.write(file, text);
  }
}
