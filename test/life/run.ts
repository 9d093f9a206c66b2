import { buildOnce } from '../support/bundles.ts';
import { commandLine, exitOnSignals, newSeed } from '../support/command-line.ts';
import { createStatusLine } from '../support/status-line.ts';
import { KINDS } from './events.ts';
import { failureText, playLives } from './lives.ts';

const USAGE = `npm run test:long -- life [options]

Random sequences of events on whole nodes: pods, claims and checkpoints, the kubelet, CPUs, huge pages, NICs, Open vSwitch,
the agent and its state directory, the API server, the clock. The agents are real; what surrounds them are stand-ins.
After each event, the report and Open vSwitch's threads must agree with the truth within the promised times.

  --events <number>    default 10000
  --seed <number>      repeats the events of another run
  --parallel <number>  nodes that live side by side (default 12)
  --calm <percent>     long pauses, in which every promise must be kept (default 8)
  --shrink <seconds>   time to shorten the sequence of a failure (default 600)
  --without <texts>    leaves out events whose names contain one of these, such as CPU,checkpoint
  --keep-going         reports each way of failing once, instead of ending at the first
  --no-build           take the bundles as they are
  --help

Ends with 0 if everything held, with 1 after a failure, with 2 on wrong options. It needs root, for file systems that are full.`;

const { values, wholeNumber } = commandLine(USAGE, {
  events: { type: 'string' },
  seed: { type: 'string' },
  parallel: { type: 'string' },
  calm: { type: 'string' },
  shrink: { type: 'string' },
  without: { type: 'string' },
  'keep-going': { type: 'boolean' },
  'no-build': { type: 'boolean' },
});
const seed = wholeNumber('seed', 0) ?? newSeed();
const total = wholeNumber('events', 1) ?? 10_000;

exitOnSignals();
console.log(`seed ${seed}: ${total} events of ${KINDS.size} kinds`);
if (!values['no-build']) buildOnce();
const progress = createStatusLine(process.stdout, 100);
const { events, failures } = await playLives({
  seed,
  events: total,
  parallel: wholeNumber('parallel', 1) ?? 12,
  calm: (wholeNumber('calm', 0) ?? 8) / 100,
  shrinkSeconds: wholeNumber('shrink', 0) ?? 600,
  without: values.without?.split(',') ?? [],
  goesOn: values['keep-going'] ?? false,
  onFailure: (failure) => progress.line(failureText(failure)),
  progress: (count, failed) => progress.status(`${count} of ${total} events, ${failed} failures`),
});
progress.end();
for (const failure of failures) console.log(`\n${failureText(failure)}`);
console.log(`\nseed ${seed}: ${events} events, ${failures.length} failures`);
process.exit(failures.length > 0 ? 1 : 0);
