import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';

/**
 * A process that looks like an Open vSwitch daemon to whoever manages its threads: the name, the pidfile, several
 * threads. It switches no packets. For machines without Open vSwitch.
 */
const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'ovs-vswitchd' },
    rundir: { type: 'string', default: '.' },
    threads: { type: 'string', default: '6' },
  },
});

// The kernel's name of the process (comm), which pidfile readers compare; it holds 15 characters.
process.title = values.name;
for (let i = 0; i < Number(values.threads); i++) new Worker('setInterval(() => {}, 1000)', { eval: true });
writeFileSync(join(values.rundir, `${values.name}.pid`), `${process.pid}\n`);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0));
