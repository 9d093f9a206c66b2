import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { commandLine, newSeed } from '../support/command-line.ts';
import { startWorkCounter } from '../support/work-counter.ts';
import { casesOf, keepCase } from './cases.ts';

const ROOT = pathToFileURL(join(import.meta.dirname, '../..')).href;
/** The libraries that read foreign data. */
const LIBRARIES = ['zod', 'yaml'].map((name) => `${ROOT}/node_modules/${name}/`);

// Before the targets are loaded, because only functions that are compiled later are counted.
const counter = startWorkCounter((url) => {
  // Of zod, which compiles checks of objects.
  if (url === '') return true;
  if (LIBRARIES.some((library) => url.startsWith(library))) return true;
  return url.startsWith(`${ROOT}/`) && !url.startsWith(`${ROOT}/test/`) && !url.startsWith(`${ROOT}/node_modules/`);
});
const { TARGETS } = await import('./targets/index.ts');

const USAGE = `tsx test/fuzz/work-run.ts [target...] [options]

Holds the work of parsers to bounds that grow with the bytes of an input, as npm run fuzz does after it has judged what
they make of it. Work is the number of blocks of code that run.

  --runs <number>      inputs for each target (default 10000; with --seconds: as many as there is time for)
  --seconds <number>   time for each target
  --seed <number>      repeats the inputs of another run
  --keep               keeps inputs above their bound in test/fuzz/cases
  --help`;

const { positionals, values, wholeNumber } = commandLine(
  USAGE,
  { runs: { type: 'string' }, seconds: { type: 'string' }, seed: { type: 'string' }, keep: { type: 'boolean' } },
  true,
);
const seed = wholeNumber('seed', 0) ?? newSeed();
const seconds = wholeNumber('seconds', 1);
const runs = wholeNumber('runs', 1) ?? (seconds === undefined ? 10_000 : Number.MAX_SAFE_INTEGER);

let failed = 0;
for (const target of TARGETS) {
  if (positionals.length > 0 && !positionals.includes(target.name)) continue;
  const began = performance.now();
  const cases = casesOf(target.name).map(({ input }) => input);
  const options = { seed, runs, ...(seconds !== undefined && { seconds }) };
  try {
    await target.holdCases(counter, cases);
    const { perByte, share, failure, runs: done } = await target.countWork(counter, options);
    const took = ((performance.now() - began) / 1000).toFixed(1);
    const most = `at most ${perByte.toFixed(1)} blocks a byte, ${(share * 100).toFixed(0)} % of its bound`;
    console.log(`${target.name}: work of ${done} inputs in ${took} s: ${most}, ${failure ? 1 : 0} above`);
    if (failure === undefined) continue;
    console.log(`  ${failure.why}\n  ${JSON.stringify(failure.input).slice(0, 200)}`);
    if (values.keep) console.log(`  kept: ${keepCase(target.name, failure)}`);
  } catch (error) {
    console.log(`${target.name}: a case: ${(error as Error).message}`);
  }
  failed++;
}
process.exit(failed > 0 ? 1 : 0);
