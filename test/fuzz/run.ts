import { commandLine, newSeed } from '../support/command-line.ts';
import { keepCase } from './engine.ts';
import { FOREIGN_TARGETS, TARGETS } from './targets/index.ts';

const ALL = [...TARGETS, ...FOREIGN_TARGETS];
const USAGE = `npm run fuzz -- [target...] [options]

Feeds parsers what is almost right, and judges what they make of it. Targets (default: all):

${ALL.map(({ name, about }) => `  ${name.padEnd(18)} ${about}`).join('\n')}

  --runs <number>      inputs for each target (default 10000; with --seconds: as many as there is time for)
  --seconds <number>   time for each target
  --seed <number>      repeats the inputs of another run
  --help

Each input is also held to a bound of processor time and memory.

An input that is judged wrong, or above its bound, is made as small as can be and kept in test/fuzz/cases, where npm test judges it again.
Ends with 0 if there was none, with 1 if there was one, with 2 on wrong options.`;

const { positionals, refuse, wholeNumber } = commandLine(
  USAGE,
  { runs: { type: 'string' }, seconds: { type: 'string' }, seed: { type: 'string' } },
  true,
);
const seed = wholeNumber('seed', 0) ?? newSeed();
const seconds = wholeNumber('seconds', 1);
const runs = wholeNumber('runs', 1) ?? (seconds === undefined ? 10_000 : Number.MAX_SAFE_INTEGER);
const unknown = positionals.find((name) => !ALL.some((target) => target.name === name));
if (unknown !== undefined) refuse(`${unknown}: there is no such target`);
const chosen = <T extends { readonly name: string }>(list: readonly T[]) =>
  list.filter(({ name }) => positionals.length === 0 || positionals.includes(name));

console.log(`seed ${seed}`);
let failed = 0;
for (const target of chosen(TARGETS)) {
  const began = performance.now();
  const limits = { runs, ...(seconds !== undefined && { seconds }) };
  const { counts, failure, runs: done } = await target.play({ seed, ...limits, holdMemory: true });
  const took = ((performance.now() - began) / 1000).toFixed(1);
  const sums = `${counts.accepted} accepted, ${counts.refused} refused`;
  console.log(`${target.name}: ${done} inputs in ${took} s: ${sums}, ${failure === undefined ? 0 : 1} judged wrong`);
  if (failure === undefined) continue;
  failed++;
  console.log(`  ${failure.why}\n  kept: ${keepCase(target.name, failure)}`);
}
for (const target of chosen(FOREIGN_TARGETS)) {
  const missing = target.missing();
  if (missing !== undefined) {
    console.log(`${target.name}: skipped, ${missing}`);
    continue;
  }
  // The clock cannot stop its calls; at some two thousand per second this many fit.
  const many = seconds === undefined ? runs : Math.min(runs, seconds * 2000);
  const { problems, runs: done } = target.play(many, seed);
  console.log(`${target.name}: ${done} inputs: ${problems.length} judged wrong`);
  for (const problem of problems) console.log(`  ${problem}`);
  if (problems.length > 0 || done !== many) failed++;
}
console.log(`seed ${seed}: ${failed === 0 ? 'no target' : failed} judged wrong`);
process.exit(failed > 0 ? 1 : 0);
