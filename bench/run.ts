import { createStatusLine } from '../cli/support/status-line.ts';
import { commandLine, exitOnSignals } from '../test/support/command-line.ts';
import { CLI_BENCHES } from './cli/index.ts';
import { CONSOLE_BENCHES } from './console/index.ts';
import { START_UP_NAMES, startUpAndMemory } from './daemons/index.ts';
import { HOSTILE_BENCHES } from './hostile/index.ts';
import { MODEL_BENCHES } from './model/index.ts';
import { NATIVE_BENCHES } from './native/index.ts';
import { NODE_AGENT_BENCHES } from './node-agent/index.ts';
import { outcome } from './outcome/index.ts';
import { races } from './races/index.ts';
import { SCHEDULER_PLUGIN_BENCHES } from './scheduler-plugin/index.ts';
import { ordinaryDuringOutage } from './scheduler-plugin/outage.ts';
import { besideRealScheduler } from './scheduler-plugin/real-scheduler.ts';
import { takeover } from './scheduler-plugin/takeover.ts';
import { type BenchGroup, type BenchSettings, DEFAULTS } from './support/settings.ts';
import type { BenchResult } from './support/timing.ts';
import { writeTable } from './table.ts';
import { VM_PINNING_BENCHES } from './vm-pinning/index.ts';
import { WEBHOOK_BENCHES } from './webhook/index.ts';

/** What each group's names begin with, so that a prefix runs no more than it must. */
const GROUPS: readonly BenchGroup[] = [
  { names: ['model.'], benches: MODEL_BENCHES },
  ...HOSTILE_BENCHES,
  ...WEBHOOK_BENCHES,
  ...SCHEDULER_PLUGIN_BENCHES,
  { names: ['kube-scheduler.'], benches: [besideRealScheduler], onRequest: true },
  { names: ['outage.'], benches: [ordinaryDuringOutage], onRequest: true },
  { names: ['takeover.'], benches: [takeover], onRequest: true },
  { names: ['races.'], benches: [races], onRequest: true },
  { names: ['outcome.'], benches: [outcome], onRequest: true },
  ...CONSOLE_BENCHES,
  { names: ['cli.'], benches: CLI_BENCHES },
  { names: ['native.'], benches: NATIVE_BENCHES },
  ...NODE_AGENT_BENCHES,
  { names: ['vm-pinning.'], benches: VM_PINNING_BENCHES },
  { names: START_UP_NAMES, benches: [startUpAndMemory] },
];

const USAGE = `npm run bench -- [prefix] [options]

Ratios against a base that is measured in the same run. The prefix chooses by the beginning of names:
  ${GROUPS.flatMap(({ names }) => names).join('\n  ')}

  --write <file>     put what was measured into a table, as docs/maintainers/benchmarks.md is
  --json             print JSON
  --nodes <number>   of kube-scheduler. (default ${DEFAULTS.nodes}), which runs only when it is named: 40 minutes
  --pods <number>    of the same, that wait for each start of the scheduler (default ${DEFAULTS.pods})
  --rounds <number>  of the same (default ${DEFAULTS.rounds})
  --idle <seconds>   for which node-agent.ovs-idle counts system calls (default ${DEFAULTS.idle})
  --help

PLUMBLINE_PEPR=<directory> names where the npm package pepr is installed, to be measured beside the webhook.
Ends with 0 if every bound holds, with 1 if one does not, with 2 on wrong options.`;

const { values, positionals, refuse, wholeNumber } = commandLine(
  USAGE,
  {
    json: { type: 'boolean', default: false },
    write: { type: 'string' },
    nodes: { type: 'string' },
    pods: { type: 'string' },
    rounds: { type: 'string' },
    idle: { type: 'string' },
  },
  true,
);
const [prefix = '', ...more] = positionals;
if (more.length > 0) refuse(`${more.join(' ')}: there is one prefix`);
const settings: BenchSettings = {
  nodes: wholeNumber('nodes', 1) ?? DEFAULTS.nodes,
  pods: wholeNumber('pods', 100) ?? DEFAULTS.pods,
  rounds: wholeNumber('rounds', 1) ?? DEFAULTS.rounds,
  idle: wholeNumber('idle', 1) ?? DEFAULTS.idle,
  asked: (name) => name.startsWith(prefix),
};
const changed = (['nodes', 'pods', 'idle'] as const).filter((name) => settings[name] !== DEFAULTS[name]);
if (values.write !== undefined && changed.length > 0) {
  refuse(`--${changed[0]}: the table's figures are those of ${DEFAULTS[changed[0]!]}; measure without --write`);
}

exitOnSignals();
const isAskedFor = (name: string) => name.startsWith(prefix) || prefix.startsWith(name);
if (!GROUPS.some(({ names }) => names.some(isAskedFor))) refuse(`no measurement begins with ${prefix}`);
const results: BenchResult[] = [];
const progress = createStatusLine(process.stderr, 1);
const asked = GROUPS.filter(({ names, onRequest }) => names.some(isAskedFor) && !(onRequest && prefix === ''));
for (const [index, { names, benches }] of asked.entries()) {
  for (const [turn, bench] of benches.entries()) {
    progress.status(`${names[0]} ${turn + 1} of ${benches.length}, group ${index + 1} of ${asked.length}`);
    const found = [await bench(settings)].flat().filter(({ name }) => settings.asked(name));
    progress.end();
    results.push(...found);
    if (values.write !== undefined) writeTable(values.write, found);
    if (!values.json) for (const result of found) console.log(lineOf(result));
  }
}
if (values.json) console.log(JSON.stringify(results, null, 2));
if (results.length === 0) console.error(`nothing was measured that begins with ${prefix}`);
process.exit(results.length > 0 && results.every(({ holds }) => holds) ? 0 : 1);

function lineOf({ name, ratio, spread, bound, holds }: BenchResult): string {
  const [least, most] = spread.map((value) => value.toFixed(2));
  return `${holds ? 'holds' : 'FAILS'}  ${name.padEnd(48)} ${ratio.toFixed(2).padStart(8)}  (${least} to ${most}), held to ${bound}`;
}
