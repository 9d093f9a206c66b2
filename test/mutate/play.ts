import { join } from 'node:path';
import Mocha from 'mocha';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.ts';
import type { Answer, Asked } from './player.ts';
import { NONE } from './switches.ts';

/**
 * `player.ts` runs it as a separate process in the copy. It runs one test file after the other on request of its
 * parent, as often as requested; files are loaded once.
 */
const loaded = new Map<string, Mocha>();
let active = NONE;
let reached = new Set<number>();

globalThis.plumblineMutant = (id) => {
  reached.add(id);
  return id === active;
};

async function play({ file, mutant, all }: Asked): Promise<Answer> {
  active = mutant;
  reached = new Set();
  const mocha = loaded.get(file) ?? new Mocha({ timeout: 0, reporter: 'min', forbidOnly: true });
  let atLoad: number[] = [];
  if (!loaded.has(file)) {
    loaded.set(file, mocha);
    mocha.cleanReferencesAfterRun(false);
    mocha.addFile(join(import.meta.dirname, '..', file));
    await mocha.loadFilesAsync();
    withoutTimeouts(mocha.suite);
    atLoad = [...reached];
    reached = new Set();
  }
  mocha.suite.bail(!all);
  let failed: string | undefined;
  return new Promise((resolve) => {
    const runner = mocha.run((failures) => {
      active = NONE;
      resolve({ passed: failures === 0, reached: [...reached], atLoad, ...(failed === undefined ? {} : { failed }) });
    });
    runner.on('fail', (one) => {
      failed ??= one.fullTitle();
    });
  });
}

/** The parent knows how long a file takes on this machine under its load. */
function withoutTimeouts(suite: Mocha.Suite): void {
  suite.eachTest((test: Mocha.Test) => test.timeout(0));
}

failOnUnhandledRejections();
process.on('message', (asked: Asked) => {
  play(asked).then(
    (answer) => process.send?.(answer),
    (error: Error) =>
      process.send?.({ passed: false, reached: [], atLoad: [], failed: error.message }, () => process.exit(1)),
  );
});
