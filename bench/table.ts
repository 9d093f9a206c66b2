import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import type { BenchResult } from './support/timing.ts';

/**
 * The description and the base of each measurement, by name or prefix; the longest one applies. A measurement without
 * an entry cannot be recorded.
 */
const AGAINST: Readonly<Record<string, string>> = {
  'webhook.reviews-over-express':
    'reviews per second of processor time; base: an express app with the same decision and all facts',
  'webhook.reviews-over-minimal-express':
    'the same; base: an express app that checks the review and adds a CPU to the pod',
  'webhook.reviews-over-pepr':
    'reviews per second of processor time; base: a Pepr module that patches without look-ups',
  'webhook.rss-over-pepr-same-run': 'resident memory after the same reviews; base: that Pepr module',
  'webhook.rss-over-pepr': 'resident memory under load; base: 191 MB, measured for Pepr on another machine',
  'webhook.private-memory-growth-in-100k-reviews': 'private memory after 100,000 reviews; base: after 10,000',
  'webhook.caches-of-10k-networks-and-5k-nodes': 'memory of the caches; base: 80 MB',
  'scheduler-plugin.only-fit-alone-seconds':
    'seconds until a VM has the one of 60 nodes (256 CPUs, eight NUMA nodes) that fits it',
  'scheduler-plugin.only-fit-beside-24-pods-seconds': 'the same next to 24 waiting pods of another namespace',
  'scheduler-plugin.only-fit-beside-unreadable-pods-seconds': 'the same with an unreadable pod on each node',
  'scheduler-plugin.filter-500-names-p99-ms':
    'p99 of the processor time of filter calls with 500 names, 5,000 nodes, in milliseconds',
  'scheduler-plugin.filter-5000-names-p99-ms': 'the same with 5,000 names',
  'scheduler-plugin.realistic-load-share-of-a-core':
    'processor time with the heartbeats of 5,000 nodes and 20 VMs a second; base: one core',
  'scheduler-plugin.realistic-load-resident-megabytes': 'megabytes of resident memory after that load',
  'scheduler-plugin.realistic-load-longest-task-ms':
    'longest task of the event loop under that load, in milliseconds, in windows of five seconds',
  'scheduler-plugin.share-of-a-core-for-500-reports-a-second':
    'processor time for 500 reports a second; base: one core',
  'kube-scheduler.': 'pods a second, 5,000 nodes; base: an extender that returns the names',
  'outage.ordinary-pods-over-no-plumbline': 'ordinary pods a second while the extender hangs; base: without Plumbline',
  'takeover.longest-task-ms':
    'longest task of the event loop, in milliseconds, with 5,000 full nodes and 1,000 waiting VMs',
  'takeover.first-answer-ms': 'milliseconds until the first answer, in the same cluster',
  'native.gate-added-over-delegate': 'time that the gate adds to an empty plugin; base: that plugin alone',
  'node-agent.ovs-reaction-p99-loop-over-agent':
    'p99 of a loop that polls every second, as OVN-Kubernetes does; base: p99 of the agent',
  'node-agent.ovs-reaction-': 'time until OVS is off the CPUs; base: a program in C',
  'node-agent.idle-system-calls-a-second': 'every duty of a host, with the gate and 2 x 64 threads, counted by strace',
  'node-agent.resident-megabytes': 'the same agent, with the memory settings of the manifests',
  'node-agent.private-megabytes-after-an-hour': 'private megabytes after an hour of changes',
  'node-agent.idle-percent-of-a-core': 'percent of a core while nothing changes',
  'node-agent.rename-to-published': 'time until the report is in the API server; base: the window and two round trips',
  'vm-pinning.64-vcpu-threads-over-c': 'pinning 64 vCPU threads; base: the system calls in C',
  'vm-pinning.discovery': 'finding 100 VMs among 5,000 processes; base: a walk of /proc',
  'console.first-paint': 'seconds of the main thread in Chromium until the page shows 5,000 nodes',
  'console.heap': 'megabytes of JavaScript heap with 5,000 nodes',
  'console.updates frames': 'frames a second with ten updates a second; base: without updates',
  'console.updates': 'share of a frame that an update takes',
  'cli.explain': 'processor time of a command with 1,000 nodes; base: an empty Node.js script',
  'cli.without': 'seconds of processor time of `simulate --without`, 5,000 nodes',
  'cli.completion': 'processor time of completing a flag of a subcommand; base: an empty Node.js script',
  'cli.version': 'processor time; base: an empty Node.js script',
  'fairness.victim-and-400-waiting-over-echo':
    'time until a VM has a node while another namespace has 400 waiting VMs and creates 10 a second; base: an extender that passes all nodes, and none for that namespace',
  'interference.stolen-unmanaged-over-agent':
    'time that a loaded Open vSwitch takes from a VM on all CPUs; base: moved by the agent',
  'interference.stolen-loop-over-agent': 'the same, moved by a loop that polls; base: moved by the agent',
  'interference.kernel-stolen-agent-over-apart':
    'time that a bridge with packet steering takes from a VM, moved by the agent; base: always on another CPU',
  'interference.kernel-p99-agent-over-apart': 'how long 99 % of arrivals wait at most; same base',
  'interference.kernel-unmanaged-over-agent': 'time that the bridge takes unmanaged; base: moved by the agent',
  'interference.kernel-measured-deviation': 'deviation of what the agent measures from what the VM lost, unmanaged',
  'webhook.start-up': 'time until it serves, started as in a pod; base: a bare node:http server',
  'scheduler-plugin.start-up': 'time until it serves, started as in a pod; base: a bare node:http server',
  'node-agent.start-up': 'time until it serves, started as in a pod; base: a bare node:http server',
  'webhook.rss-over-bare': 'resident memory; base: a bare node:http server',
  'scheduler-plugin.rss-over-bare': 'resident memory; base: a bare node:http server',
  'node-agent.rss-over-bare': 'resident memory; base: a bare node:http server',
};

/** Why a bound was not met where it was measured last, by name or prefix; the longest one applies. */
const REASONS: Readonly<Record<string, string>> = {
  'cli.completion': 'this machine was slow: three runs after it gave 1.22, 1.24 and 1.31.',
  'cli.explain-1000-nodes': 'the figure is close to the bound: three runs after it gave 7.46, 7.97 and 8.08.',
  'kube-scheduler.default-profile-over-echo':
    'schedulers, API server, etcd and extender share two cores; kube-scheduler’s own time for a pod is the same with both.',
  'kube-scheduler.default-profile-every-pod': 'as for launchers: two cores for the whole control plane.',
  'scheduler-plugin.filter-': 'V8 marks its old generation once in some thirty calls (`runtime/daemon.ts`).',
  'interference.kernel-measured-deviation':
    'this kernel does not count the time of hardware interrupts (CONFIG_IRQ_TIME_ACCOUNTING), which the VM loses, too.',
  'node-agent.idle-system-calls':
    'V8’s own calls (mprotect, futex, madvise, mmap) are 1.8 to 3.1 a second of it, from run to run.',
  'node-agent.resident-megabytes': 'see the goal below. The limit of the agent is 160 MiB.',
  'node-agent.start-up': 'a slow moment of this machine, as the spread shows; the median of other runs was 2.8 to 3.1.',
};

/** A better figure than the bound, which the bound will be when it is reached. */
interface Goal {
  readonly text: `${'<=' | '>='} ${number}`;
  /** What keeps the figure from it. */
  readonly why: string;
}

const GOALS: Readonly<Record<string, Goal>> = {
  'webhook.reviews-over-pepr': {
    text: '>= 4',
    why: 'most of a review is TLS, HTTP and JSON, which the other does, too',
  },
  'node-agent.resident-megabytes': {
    text: '<= 70',
    why: 'Node.js alone takes 37 to 44 MB; [ADR 0030](decisions.md#adr-0030-an-agent-small-enough-for-every-node) has the other parts',
  },
  'node-agent.start-up-over-bare-node': {
    text: '<= 2.5',
    why: 'V8 compiles the bundle in 50 ms; a code cache, which needs 13, is valid for one build of Node.js only',
  },
  'cli.explain-1000-nodes-over-bare-node': {
    text: '<= 5',
    why: 'of 0.37 s, Node.js takes 0.05, a cluster of two nodes 0.16 (modules, schemas, TLS), and 1,000 nodes 0.16',
  },
};

const HEAD = `# Benchmarks

\`npm run bench -- [prefix] --write docs/maintainers/benchmarks.md\` writes this page, and replaces the rows that it has measured. Most figures
are ratios to a base that was measured in the same run, so that a busy machine slows both. The spread is the smallest and the largest value
of the rounds. A bound in bold was not met in that run. \`--quick\` runs a fifth of the rounds within ten minutes, with bounds that are wider by
half. The last run had ${cpus().length} CPUs and Node.js ${process.versions.node}.

Some rows need a real kube-scheduler (\`KUBEBUILDER_ASSETS\`), Open vSwitch, a C compiler, or Pepr (\`PLUMBLINE_PEPR\`, a directory with the
npm package).
`;
const COLUMNS = '| measurement | ratio | spread | bound | measured; base |\n|-|-:|-:|-:|-|';

/**
 * Adds results to the table, ordered by name. Rows that were not measured now stay unchanged.
 * @throws Error if a result has no text in `AGAINST`
 */
export function writeTable(file: string, results: readonly BenchResult[]): void {
  const rows = new Map(rowsOf(file));
  for (const result of results) rows.set(result.name, rowOf(result));
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  writeFileSync(file, `${HEAD}\n${COLUMNS}\n${sorted.join('\n')}\n${reasonsFor(sorted)}${goalsFor(sorted)}`);
}

/** A section with the reason of each row whose bound is bold; empty if every bound was met. */
export function reasonsFor(rows: readonly string[]): string {
  const missed = rows.flatMap((row) => /^\| `([^`]+)` \|.*\| \*\*/.exec(row)?.[1] ?? []);
  if (missed.length === 0) return '';
  const lines = missed.map((name) => `- \`${name}\`: ${entryFor(name, REASONS) ?? 'the reason is not known yet.'}`);
  return `\n## Bounds that were not met\n\n${lines.join('\n')}\n`;
}

/** A section with the goals that the rows do not reach, and why; empty if they reach all. */
export function goalsFor(rows: readonly string[]): string {
  const lines = rows.flatMap((row) => {
    const [, name = '', figure = ''] = /^\| `([^`]+)` \| ([\d.]+) \|/.exec(row) ?? [];
    const goal = GOALS[name];
    if (goal === undefined) return [];
    const limit = Number(goal.text.slice(3));
    const isReached = goal.text.startsWith('<=') ? Number(figure) <= limit : Number(figure) >= limit;
    return isReached ? [] : [`- \`${name}\`: ${figure}, goal \`${goal.text}\`. The reason: ${goal.why}.`];
  });
  return lines.length === 0 ? '' : `\n## Goals that are not reached\n\n${lines.join('\n')}\n`;
}

/** The entry with the longest key that the name begins with. */
function entryFor(name: string, entries: Readonly<Record<string, string>>): string | undefined {
  const [key] = Object.keys(entries)
    .filter((beginning) => name.startsWith(beginning))
    .sort((a, b) => b.length - a.length);
  return key === undefined ? undefined : entries[key];
}

function rowsOf(file: string): [string, string][] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  const rows = text.matchAll(/^\| `([^`]+)` \|((?:[^|]*\|){3})[^|]*\|$/gm);
  return [...rows].map(([, name = '', figures]) => [name, `| \`${name}\` |${figures} ${whatOf(name)} |`]);
}

/** Whether measurements whose names begin so can be recorded. */
export function isDescribed(prefix: string): boolean {
  return Object.keys(AGAINST).some((key) => key.startsWith(prefix) || prefix.startsWith(key));
}

/** The description of a measurement. @throws Error if AGAINST has no text for it */
function whatOf(name: string): string {
  const text = entryFor(name, AGAINST);
  if (text === undefined)
    throw new Error(`bench/table.ts has no text for ${name}: add the measured value and its base`);
  return text;
}

function rowOf({ name, ratio, spread, bound, holds }: BenchResult): string {
  const digits = (value: number) => value.toFixed(value < 0.1 ? 3 : 2);
  const [least, most] = spread;
  const held = holds ? bound : `**${bound}**`;
  return `| \`${name}\` | ${digits(ratio)} | ${digits(least)}–${digits(most)} | ${held} | ${whatOf(name)} |`;
}
