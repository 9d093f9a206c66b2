import { buildOnce } from '../support/bundles.ts';
import { commandLine, exitOnSignals, newSeed } from '../support/command-line.ts';
import { createStatusLine } from '../support/status-line.ts';
import { MEASURES, type Measure, type Sample, soak } from './soak.ts';

const USAGE = `npm run test:long -- soak [options]

VMs come and go without pause while watches break off, certificates are renewed and a DPU renews its lease, all of it
twelve times as fast as in a cluster. Prints how each daemon's memory and handles went: the slope of the line through
the samples with its standard error, without the first fifth, in which caches fill.

  --minutes <number>   default 10, which stand for two hours
  --seed <number>
  --no-build           take the bundles as they are
  --help

Ends with 1 if something rises: by more over the run than is allowed, after twice its error is taken off.`;

const { values, refuse, wholeNumber } = commandLine(USAGE, {
  minutes: { type: 'string', default: '10' },
  seed: { type: 'string' },
  'no-build': { type: 'boolean' },
});
const minutes = Number(values.minutes);
if (!(minutes >= 0.5 && minutes <= 10_000)) refuse(`--minutes ${values.minutes}: expected at least 0.5`);
const seed = wholeNumber('seed', 0) ?? newSeed();

exitOnSignals();
console.log(`seed ${seed}`);
if (!values['no-build']) buildOnce();
const progress = createStatusLine(process.stdout, 1);
const { vms, samples, problems } = await soak({ minutes, seed, progress: (text) => progress.status(text) });
progress.end();
console.log(`\n${vms} VMs in ${minutes} minutes. Over the whole of it, slope ± standard error (mean; allowed):`);
let rising = 0;
for (const [name, list] of samples) {
  console.log(`\n${name}, ${list.length} samples`);
  for (const measure of Object.keys(MEASURES) as Measure[]) rising += tell(measure, list) ? 1 : 0;
}
for (const problem of problems) console.log(`NOT HELD: ${problem}`);
console.log(`\nseed ${seed}: ${rising} measures rise, ${problems.length} problems`);
process.exit(rising + problems.length > 0 ? 1 : 0);

function tell(measure: Measure, list: readonly (readonly [number, Sample])[]): boolean {
  const { unit, allowance, about } = MEASURES[measure];
  const points = list
    .filter(([minute]) => minute > minutes / 5)
    .map(([minute, sample]) => [minute, sample[measure]] as const);
  const line = fitLine(points);
  const bad = rises(line, minutes, allowance);
  const figure = (value: number) => value.toFixed(2);
  const over = `${figure(line.slope * minutes)} ± ${figure(line.error * minutes)}`;
  const level = `(${line.mean.toFixed(1)}; ${allowance})`;
  console.log(`  ${about.padEnd(44)} ${over.padStart(16)} ${unit.padEnd(3)} ${level}${bad ? '  RISES' : ''}`);
  return bad;
}

interface Line {
  /** By least squares, in the measurement's unit per unit of x. */
  readonly slope: number;
  /** The standard error of the slope. */
  readonly error: number;
  readonly mean: number;
}

/** Least squares over points of x and y. @throws RangeError if there are fewer than three */
function fitLine(points: readonly (readonly [number, number])[]): Line {
  const n = points.length;
  if (n < 3) throw new RangeError(`${n} points make no line with an error`);
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / n;
  const mean = points.reduce((sum, [, y]) => sum + y, 0) / n;
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  const slope = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - mean), 0) / spread;
  const rest = points.reduce((sum, [x, y]) => sum + (y - mean - slope * (x - meanX)) ** 2, 0);
  return { slope, error: Math.sqrt(rest / (n - 2) / spread), mean };
}

/** Whether it rises by more than the allowance, beyond what its error could explain. */
function rises({ slope, error }: Line, length: number, allowance: number): boolean {
  return (slope - 2 * error) * length > allowance;
}
