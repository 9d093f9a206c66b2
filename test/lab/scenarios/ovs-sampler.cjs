/**
 * Watches, as often as it is told to, the kubelet's shared pool, where Open vSwitch's threads may run, and how many
 * containers the runtime has. Prints a line of JSON when one of them changes, and with SIGTERM, which ends it: milliseconds
 * since the start, those of the sample before, samples so far, the pool, the threads' CPUs together, the containers.
 * Usage: ovs-sampler.cjs <milliseconds between samples> <kubelet directory> <OVS run directory> <directory with one entry
 * for each container>
 */
const { readdirSync, readFileSync } = require('node:fs');

const [between, kubelet, rundir, containers] = process.argv.slice(2);
const pids = ['ovs-vswitchd', 'ovsdb-server'].map((name) => Number(readFileSync(`${rundir}/${name}.pid`, 'utf8')));
let last = '';
let samples = 0;
let since = 0;

/** What is gone meanwhile is empty. */
function quietly(read, otherwise) {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

function allowed() {
  const lists = new Set();
  for (const pid of pids) {
    for (const tid of quietly(() => readdirSync(`/proc/${pid}/task`), [])) {
      const status = quietly(() => readFileSync(`/proc/${pid}/task/${tid}/status`, 'utf8'), '');
      const list = /Cpus_allowed_list:\s*(\S+)/.exec(status)?.[1];
      if (list !== undefined) lists.add(list);
    }
  }
  return [...lists].join();
}

function sample(isLast = false) {
  samples++;
  // In this order: a thread seen on a CPU after the pool lost it was exposed, never the other way round.
  const state = quietly(() => readFileSync(`${kubelet}/cpu_manager_state`, 'utf8'), '');
  const pool = /"defaultCpuSet":"([^"]*)"/.exec(state)?.[1] ?? '';
  const made = quietly(() => readdirSync(containers).length, 0);
  const seen = { pool, made, allowed: allowed() };
  const text = JSON.stringify(seen);
  const at = performance.now();
  if (text !== last || isLast) process.stdout.write(`${JSON.stringify({ at, since, samples, ...seen })}\n`);
  last = text;
  since = at;
  if (!isLast) setTimeout(sample, Number(between));
}

process.on('SIGTERM', () => {
  sample(true);
  process.exit(0);
});
sample();
