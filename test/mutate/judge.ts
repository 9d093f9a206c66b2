import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Copy } from './copy.ts';
import { mutated, type Placed } from './mutants.ts';
import { createPlayer, type Played, type Player, type TimedFile } from './player.ts';
import { isC, type Reached, withTexts } from './reach.ts';
import { NONE } from './switches.ts';

/**
 * `late`: noticed, because a test did not end. `not reached`: no test reaches the place, which is as bad as survived.
 * `invalid`: it does not compile. `equivalent`: on the list of changes without effect.
 */
export type Outcome = 'noticed' | 'late' | 'survived' | 'not reached' | 'invalid' | 'equivalent';

export interface Judged extends Placed {
  readonly outcome: Outcome;
  /** The test that noticed it. */
  readonly by?: string;
}

/**
 * Runs the tests that reach a mutant, the fastest file first, until one fails.
 *
 * Processes are reused, so a failing file runs again without the mutant, and a surviving mutant runs again in a new
 * process: state of modules must neither fail the tests nor hide the change.
 *
 * @param quick accepts the first result of a surviving mutant
 */
export async function judge(copy: Copy, player: Player, one: Reached, quick = false): Promise<Judged> {
  const { tests, id: _, atLoad, ...placed } = one;
  if (tests.length === 0) return { ...placed, outcome: 'not reached' };
  if (isC(one.file) && !(await withMutant(copy, one, async () => compiles(copy)))) {
    return { ...placed, outcome: 'invalid' };
  }
  const first = atLoad ? undefined : await playUntilFailure(copy, player, one);
  const isLastWord = first !== undefined && ((quick && first.passed) || (await isFailureOfMutant(player, first)));
  const { passed, late, failed } = isLastWord ? first : await playInNewProcess(copy, one);
  if (passed) return { ...placed, outcome: 'survived' };
  return { ...placed, outcome: late ? 'late' : 'noticed', ...(failed === undefined ? {} : { by: failed }) };
}

async function playInNewProcess(copy: Copy, one: Reached): Promise<Played> {
  const player = createPlayer(copy);
  try {
    return await playUntilFailure(copy, player, one);
  } finally {
    player.end();
  }
}

async function playUntilFailure(copy: Copy, player: Player, one: Reached): Promise<Played & { file: TimedFile }> {
  return withMutant(copy, one, async () => {
    for (const file of one.tests) {
      const played = await player.play(file, isC(one.file) ? NONE : one.id);
      if (!played.passed) return { ...played, file };
    }
    const last = one.tests.at(-1) ?? { name: '', seconds: 0 };
    return { passed: true, late: false, crashed: false, reached: [], atLoad: [], seconds: 0, file: last };
  });
}

async function isFailureOfMutant(player: Player, played: Played & { file: TimedFile }): Promise<boolean> {
  if (played.passed || played.crashed) return false;
  return played.late || (await player.play(played.file, NONE)).passed;
}

/** Mutants of C are not behind switches. */
const withMutant = <T>(copy: Copy, one: Placed, work: () => Promise<T>): Promise<T> =>
  withTexts(copy, new Map(isC(one.file) ? [[one.file, mutated(copy.read(one.file), one)]] : []), work);

/** Whether the plugin can be built as for a release. */
function compiles({ directory, temporary }: Copy): boolean {
  const args = ['-s', '-B', '-C', join(directory, 'native/cni'), `OUT=${join(temporary, 'compiled')}`];
  return spawnSync('make', args, { stdio: 'ignore' }).status === 0;
}

/** Mutants on the list are not run. */
export const asEquivalent = ({ tests: _tests, id: _id, atLoad: _atLoad, ...placed }: Reached): Judged => ({
  ...placed,
  outcome: 'equivalent',
});

/** The share of noticed mutants among those that count. */
export function scoreOf(judged: readonly Judged[]) {
  const counted = judged.filter(({ outcome }) => outcome !== 'invalid' && outcome !== 'equivalent').length;
  const noticed = judged.filter(({ outcome }) => outcome === 'noticed' || outcome === 'late').length;
  return { noticed, counted, percent: counted === 0 ? 100 : (100 * noticed) / counted };
}
