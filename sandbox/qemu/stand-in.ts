import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';

/** A stand-in for QEMU with its names of threads. It prints `ready`, and ends with its standard input. */
const { values } = parseArgs({ options: { vcpus: { type: 'string', default: '1' } } });

// The kernel's name of the process (comm) is limited to 15 characters.
process.title = 'qemu-system-x86';
const names = Array.from({ length: Number(values.vcpus) }, (_, index) => `CPU ${index}/TCG`);
void Promise.all(names.map(startThread)).then(() => process.stdout.write('ready\n'));
process.stdin.on('end', () => process.exit(0)).resume();

/** The worker's own thread makes synchronous calls, so /proc/thread-self is the thread itself. */
function startThread(name: string): Promise<void> {
  const program = `
    require('node:fs').writeFileSync('/proc/thread-self/comm', require('node:worker_threads').workerData);
    require('node:worker_threads').parentPort.postMessage('named');
    setInterval(() => {}, 60_000);`;
  return new Promise((resolve, reject) => {
    const worker = new Worker(program, { eval: true, workerData: name });
    worker.once('message', () => resolve());
    worker.once('error', reject);
  });
}
