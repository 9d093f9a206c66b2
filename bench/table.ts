import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import type { BenchResult } from './support/timing.ts';

/**
 * The description and the base of each measurement, by name or prefix; the longest one applies. A measurement without
 * an entry cannot be recorded.
 */
const AGAINST: Readonly<Record<string, string>> = {
  'webhook.reviews-over-express':
    'reviews for a second of processor time; an express app that patches and looks nothing up',
  'webhook.reviews-over-pepr': 'the same; a Pepr module that patches and looks nothing up',
  'webhook.rss-over-pepr-beside-it': 'resident memory after the same reviews; that Pepr module',
  'webhook.rss-over-pepr': 'resident memory under load; the 191 MB that Pepr was measured to take elsewhere',
  'webhook.private-memory-growth-in-100k-reviews': 'private memory after 100,000 reviews; after 10,000',
  'webhook.caches-of-10k-networks-and-5k-nodes': 'memory of the caches; 40 MB',
  'scheduler-plugin.filter-5000-names-over-plain': 'a filter call; a plain express extender with JSON.parse and a Set',
  'scheduler-plugin.filter-5000-names-over-echo': 'a filter call; node:http that parses the names and writes them back',
  'scheduler-plugin.filter-15000-over-5000': 'a filter call with 15,000 names; with 5,000',
  'scheduler-plugin.filter-p99-over-p50': '20,000 calls while 1,000 nodes a second report again; their own median',
  'scheduler-plugin.bytes-per-node': 'bytes of memory for each node beyond its name',
  'scheduler-plugin.share-of-a-core-for-500-reports-a-second': 'processor time for 500 reports a second; one core',
  'kube-scheduler.':
    'pods a second of a real kube-scheduler, 5,000 nodes, 1,000 pods; with an extender that echoes the names',
  'races.vms-rejected-per-1000':
    'VMs that a kubelet rejected, since the other scheduler was there first; 50 nearly full nodes',
  'races.ordinary-pods-rejected-per-1000': 'Guaranteed pods of the cluster’s own scheduler, in the same run',
  'races.rejections-in-a-row': 'most rejections of one owner before its pod ran',
  'outcome.rejections-per-100': 'launchers that kubelets rejected, for 100 VMs on 8 nodes (docs/reference/outcome.md)',
  'outcome.running-in-10-s': 'share of the VMs for which there is room that ran within 10 s, in the same run',
  'outcome.near-network': 'share of the VMs with a network whose CPUs are all on its NUMA node',
  'outcome.running-at-end-over-kubevirt': 'VMs that run on the full fleet; with KubeVirt alone',
  'outage.ordinary-pods-over-no-plumbline':
    'pods a second of the cluster’s own kube-scheduler while the extender hangs; without Plumbline',
  'takeover.longest-task-ms': 'milliseconds of the event loop after a takeover, 5,000 full nodes and 1,000 waiting VMs',
  'takeover.first-answer-ms': 'milliseconds until the first call after a takeover is answered, in the same cluster',
  'scheduler-plugin.loopback-http-over-tls': 'a filter call over plain HTTP; over TLS',
  'kube-scheduler.default-profile-unmatched':
    'pods for a second of kube-scheduler’s processor time; without any extender',
  'kube-scheduler.all-nodes-profile-unmatched':
    'pods for a second of kube-scheduler’s processor time; without any extender',
  'native.gate-over-node-script': 'the CNI gate; the same plugin as a script of Node.js',
  'native.gate-added-over-delegate':
    'what the gate adds to a plugin behind it that does nothing, over that plugin alone',
  'native.affinity-': 'affinity of so many threads; a loop in C',
  'node-agent.affinity-': 'the agent’s way to set the affinity of so many threads; a loop in C',
  'node-agent.ovs-reaction-p99-loop-over-agent':
    'slowest hundredth of OVS’s reactions of a loop that polls, as OVN-Kubernetes has it; of the agent’s',
  'node-agent.ovs-reaction-':
    'time from the kubelet’s write until OVS is off the CPUs; a program in C that does nothing else',
  'node-agent.ovs-idle-': 'half a minute without a change; counted by strace',
  'node-agent.parse-1000-cpus-250-pods-over-reading': 'parsing the kubelet’s checkpoint; reading the file',
  'node-agent.private-megabytes-after-an-hour': 'private megabytes after an hour of changes',
  'node-agent.idle-percent-of-a-core': 'percent of a core while nothing changes',
  'node-agent.rename-to-published':
    'from the kubelet’s rename to the report at the API server; the window and two round trips',
  'node-agent.rename-to-subscriber': 'from the kubelet’s rename to its subscriber in the agent; a bare fs.watch',
  'vm-pinning.64-vcpu-threads-over-c': 'pinning 64 vCPU threads; the bare system calls in C',
  'vm-pinning.discovery': 'finding 100 VMs among 5,000 processes; a walk of /proc',
  'console.first-paint': 'seconds of the main thread in Chromium until 5,000 nodes are there',
  'console.heap': 'megabytes of JavaScript heap with 5,000 nodes',
  'console.updates frames': 'frames a second under ten updates a second; at rest',
  'console.updates': 'share of a frame that an update takes',
  'cli.explain': 'processor time of a command with 1,000 nodes; an empty script of Node.js',
  'cli.completion': 'processor time of completing a flag of a subcommand; an empty script of Node.js',
  'cli.version': 'processor time; an empty script of Node.js',
  'model.coarse-fit-over-xor': 'the coarse fit of a pod on 5,000 nodes; an exclusive-or over the same words',
  'model.coarse-fit-50000-over-5000': 'the coarse fit on 50,000 nodes; on 5,000',
  'model.prediction-over-sets': 'predictions a second; the same algorithm on JavaScript Sets',
  'model.guest-cells-32-rooms-over-16': 'fitting guest cells on 32 NUMA nodes; on 16',
  'model.guest-cells': 'fitting one guest cell more on 16 NUMA nodes; one less',
  'hostile.': 'time per byte of the worst input that is accepted; of a typical one',
  'hostile.ms-': 'milliseconds of processor time for the worst input that is accepted',
  'webhook.start-up': 'from the start of the process until it serves; a bare node:http server',
  'scheduler-plugin.start-up': 'from the start of the process until it serves; a bare node:http server',
  'node-agent.start-up': 'from the start of the process until it serves; a bare node:http server',
  'webhook.rss-over-bare': 'resident memory; a bare node:http server',
  'scheduler-plugin.rss-over-bare': 'resident memory; a bare node:http server',
  'node-agent.rss-over-bare': 'resident memory; a bare node:http server',
};

const HEAD = `# Benchmarks

Written by \`npm run bench -- [prefix] --write docs/maintainers/benchmarks.md\`, which replaces the rows that it has measured and keeps the
others. Every figure is a ratio against something measured in the same run, in turns or side by side, so that a busy machine
slows both; the spread is the least and the most of the rounds. Less is better unless a line says otherwise. \`>=\`: more is better.
A bound in bold did not hold in that run. Each group of rows has a process of its own. \`--quick\` plays a fifth of the rounds, for a verdict
in about eight minutes.

Peers that need more than \`npm ci\`: a real kube-scheduler (\`KUBEBUILDER_ASSETS\`), Open vSwitch, a C compiler, and Pepr
(\`PLUMBLINE_PEPR\`, a directory with the npm package in it).
`;
const COLUMNS =
  '| measurement | ratio | spread | held to | what; against what | machine |\n| --- | ---: | ---: | ---: | --- | --- |';

/**
 * Adds results to the table, ordered by name. Rows that were not measured now stay unchanged.
 * @throws Error if a result has no text in `AGAINST`
 */
export function writeTable(file: string, results: readonly BenchResult[]): void {
  const rows = new Map(rowsOf(file));
  for (const result of results) rows.set(result.name, rowOf(result));
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  writeFileSync(file, `${HEAD}\n${COLUMNS}\n${sorted.join('\n')}\n`);
}

function rowsOf(file: string): [string, string][] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  const rows = text.matchAll(/^\| `([^`]+)` \|((?:[^|]*\|){3})[^|]*\|([^|]*)\|$/gm);
  return [...rows].map(([, name = '', figures, machine]) => [
    name,
    `| \`${name}\` |${figures} ${whatOf(name)} |${machine}|`,
  ]);
}

/** The description of a measurement. @throws Error if AGAINST has no text for it */
function whatOf(name: string): string {
  const key = Object.keys(AGAINST)
    .filter((beginning) => name.startsWith(beginning))
    .sort((a, b) => b.length - a.length)[0];
  const text = key === undefined ? undefined : AGAINST[key];
  if (text === undefined)
    throw new Error(`bench/table.ts has no text for ${name}: say there against what it is measured`);
  return text;
}

function rowOf({ name, ratio, spread, bound, holds }: BenchResult): string {
  const digits = (value: number) => value.toFixed(value < 0.1 ? 3 : 2);
  const [least, most] = spread;
  const machine = `${cpus().length} cores, Node.js ${process.versions.node}`;
  const held = holds ? bound : `**${bound}**`;
  return `| \`${name}\` | ${digits(ratio)} | ${digits(least)} to ${digits(most)} | ${held} | ${whatOf(name)} | ${machine} |`;
}
