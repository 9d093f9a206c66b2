import { recordRun } from '../test/last-run.ts';
import { commandLine, exitOnSignals } from '../test/support/command-line.ts';
import { createStatusLine } from '../test/support/status-line.ts';
import { measureApart } from './apart.ts';
import { GROUPS } from './groups.ts';
import { type BenchGroup, DEFAULTS } from './support/settings.ts';
import type { BenchResult } from './support/timing.ts';
import { isDescribed, writeTable } from './table.ts';

const USAGE = `npm run bench -- [prefix] [options]

Ratios against a base that is measured in the same run. The prefix chooses by the beginning of names:
  ${GROUPS.flatMap(({ names }) => names).join('\n  ')}

  --quick            a fifth of the rounds: every row that needs no prefix within ten minutes, with a wider spread
  --write <file>     put what was measured into a table, as docs/maintainers/benchmarks.md is
  --json             print JSON
  --nodes <number>   of kube-scheduler. (default ${DEFAULTS.nodes}), which runs only when it is named: 40 minutes
  --pods <number>    of the same, that wait for each start of the scheduler (default ${DEFAULTS.pods})
  --rounds <number>  of the same (default ${DEFAULTS.rounds})
  --idle <seconds>   for which node-agent.idle-system-calls counts system calls (default ${DEFAULTS.idle})
  --help

PLUMBLINE_PEPR=<directory> is where the npm package pepr is installed, to measure it next to the webhook.
Exit status: 0 if every bound holds, 1 if one does not or a measurement fails, 2 on wrong options.`;

const { values, positionals, refuse, wholeNumber } = commandLine(
  USAGE,
  {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
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
const settings = {
  nodes: wholeNumber('nodes', 1) ?? DEFAULTS.nodes,
  pods: wholeNumber('pods', 100) ?? DEFAULTS.pods,
  rounds: wholeNumber('rounds', 1) ?? DEFAULTS.rounds,
  idle: wholeNumber('idle', 1) ?? DEFAULTS.idle,
  quick: values.quick,
  prefix,
};
const changed = (['nodes', 'pods', 'idle'] as const).filter((name) => settings[name] !== DEFAULTS[name]);
if (values.write !== undefined && changed.length > 0) {
  refuse(`--${changed[0]}: the table's figures are those of ${DEFAULTS[changed[0]!]}; measure without --write`);
}

if (values.write !== undefined && values.quick) refuse('--quick: the table has the figures of whole runs');

exitOnSignals();
const isAskedFor = (name: string) => name.startsWith(prefix) || prefix.startsWith(name);
if (!GROUPS.some(({ names }) => names.some(isAskedFor))) refuse(`no measurement begins with ${prefix}`);
const begun = performance.now();
/** Of every row that needs no prefix. */
const QUICK_SECONDS = 600;
const MINUTES = 5;
const MINUTES_ON_REQUEST = 90;
const results: BenchResult[] = [];
/** Groups whose measurement failed. */
const failed: string[] = [];
const progress = createStatusLine(process.stderr, 1);
const asked = [...GROUPS.entries()].filter(
  ([, { names, onRequest }]) => names.some(isAskedFor) && !(onRequest && prefix === ''),
);
if (values.write !== undefined) {
  const undescribed = asked.flatMap(([, { names }]) => names).find((name) => !isDescribed(name));
  if (undescribed !== undefined) refuse(`--write: bench/table.ts has no text for ${undescribed}`);
}
let turn = 0;
await Promise.all(lanesOf(asked).map(measureInTurn));
const holding = results.filter(({ holds }) => holds).length;
const isWhole = prefix === '' && values.write !== undefined;
if (isWhole && failed.length === 0) {
  recordRun('bench', summaryLine(), [['Node.js', process.versions.node]]);
  console.log('recorded in bench/last-run.md');
}
if (values.json) console.log(JSON.stringify(results, null, 2));
else console.log(summaryLine());
if (results.length === 0) console.error(`nothing was measured that begins with ${prefix}`);
process.exit(results.length > 0 && holding === results.length && failed.length === 0 ? 0 : 1);

/** Groups that are measured one after another. A quick run has several such lanes at the same time. */
function lanesOf(groups: typeof asked): (typeof asked)[] {
  if (!values.quick) return [groups];
  const having = (wanted: (typeof asked)[number][1]['alongside']) =>
    groups.filter(([, { alongside }]) => alongside === wanted);
  return [having(undefined), having('counts'), ...having('waits').map((one) => [one])];
}

async function measureInTurn(groups: typeof asked): Promise<void> {
  for (const [index, group] of groups) {
    const { names } = group;
    progress.status(`${names[0]}: ${++turn} of ${asked.length}`);
    const since = performance.now();
    const found = await measureApart({ group: index, ...settings, deadline: deadlineOf(group) }).catch(
      (error: Error) => {
        // The other groups are still worth measuring.
        failed.push(names[0] ?? '');
        progress.line(`# ${names[0]}: not measured: ${error.message}`);
        return [];
      },
    );
    progress.line(`# ${names[0]}: ${Math.round((performance.now() - since) / 1000)} s`);
    progress.end();
    results.push(...found);
    if (values.write !== undefined) writeTable(values.write, found);
    if (!values.json) for (const result of found) console.log(lineOf(result));
  }
}

/** Seconds after which a measurement counts as hung. All of a quick run end within QUICK_SECONDS. */
function deadlineOf({ minutes, onRequest }: BenchGroup): number {
  const full = (minutes ?? (onRequest ? MINUTES_ON_REQUEST : MINUTES)) * 60;
  if (!values.quick) return full;
  const left = QUICK_SECONDS - (performance.now() - begun) / 1000;
  return Math.max(1, Math.round(onRequest ? full : Math.min(full, left)));
}

function lineOf({ name, ratio, spread, bound, holds }: BenchResult): string {
  const [least, most] = spread.map((value) => value.toFixed(2));
  return `${holds ? 'holds' : 'FAILS'}  ${name.padEnd(54)} ${ratio.toFixed(2).padStart(8)}  (${least} to ${most}), bound ${bound}`;
}

function summaryLine(): string {
  const seconds = Math.round((performance.now() - begun) / 1000);
  const left = GROUPS.filter(({ onRequest }) => onRequest && prefix === '').flatMap(({ names }) => names);
  const without =
    left.length === 0 ? '' : `; not measured without their name, since each takes minutes: ${left.join(' ')}`;
  const broken = failed.length === 0 ? '' : `, ${failed.length} measurements failed: ${failed.join(' ')}`;
  return `${holding} of ${results.length} bounds hold${broken}, ${seconds} s${without}`;
}
