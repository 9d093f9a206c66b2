import { parseArgs } from 'node:util';
import { CLI_BENCHES } from './cli/index.ts';
import { CONSOLE_BENCHES } from './console/index.ts';
import { START_UP_NAMES, startUpAndMemory } from './daemons/index.ts';
import { MODEL_BENCHES } from './model/index.ts';
import { NATIVE_BENCHES } from './native/index.ts';
import { NODE_AGENT_BENCHES } from './node-agent/index.ts';
import { SCHEDULER_PLUGIN_BENCHES } from './scheduler-plugin/index.ts';
import { podsPerSecond } from './scheduler-plugin/real-scheduler.ts';
import type { BenchResult } from './support/timing.ts';
import { writeTable } from './table.ts';
import { VM_PINNING_BENCHES } from './vm-pinning/index.ts';
import { WEBHOOK_BENCHES } from './webhook/index.ts';

/**
 * `npm run bench -- [prefix] [--json] [--write FILE]`: ratios against a base measured in the same run. Names begin with
 * what they measure; a prefix chooses some. Ends with 1 if a bound does not hold. What takes minutes runs only when it is
 * named. --write puts what was measured into a table of Markdown.
 */
const { values, positionals } = parseArgs({
  options: { json: { type: 'boolean', default: false }, write: { type: 'string' } },
  allowPositionals: true,
});
const [prefix = ''] = positionals;

type Bench = () => BenchResult | BenchResult[] | Promise<BenchResult | BenchResult[]>;

interface Group {
  readonly names: readonly string[];
  readonly benches: readonly Bench[];
  /** Only when a prefix asks for it. */
  readonly onRequest?: true;
}

/** What each group's names begin with, so that a prefix runs no more than it must. */
const GROUPS: readonly Group[] = [
  { names: ['model.'], benches: MODEL_BENCHES },
  ...WEBHOOK_BENCHES,
  { names: ['scheduler-plugin.'], benches: SCHEDULER_PLUGIN_BENCHES },
  { names: ['kube-scheduler.'], benches: [podsPerSecond], onRequest: true },
  ...CONSOLE_BENCHES,
  { names: ['cli.'], benches: CLI_BENCHES },
  { names: ['native.'], benches: NATIVE_BENCHES },
  { names: ['node-agent.'], benches: NODE_AGENT_BENCHES },
  { names: ['vm-pinning.'], benches: VM_PINNING_BENCHES },
  { names: START_UP_NAMES, benches: [startUpAndMemory] },
];

const isAskedFor = (name: string) => name.startsWith(prefix) || prefix.startsWith(name);
const results: BenchResult[] = [];
for (const { names, benches, onRequest } of GROUPS) {
  if (!names.some(isAskedFor) || (onRequest && prefix === '')) continue;
  for (const bench of benches) {
    const found = [await bench()].flat().filter(({ name }) => name.startsWith(prefix));
    results.push(...found);
    if (values.write !== undefined) writeTable(values.write, found);
    if (!values.json) for (const result of found) console.log(lineOf(result));
  }
}
if (values.json) console.log(JSON.stringify(results, null, 2));
if (results.length === 0) console.error(`no measurement begins with ${prefix}`);
process.exit(results.length > 0 && results.every(({ holds }) => holds) ? 0 : 1);

function lineOf({ name, ratio, spread, bound, holds }: BenchResult): string {
  const [least, most] = spread.map((value) => value.toFixed(2));
  return `${holds ? 'holds' : 'FAILS'}  ${name.padEnd(48)} ${ratio.toFixed(2).padStart(8)}  (${least} to ${most}), held to ${bound}`;
}
