import { readdirSync } from 'node:fs';
import { type Affinity, createAffinity } from '../../native/affinity.ts';
import { compile, median } from '../support/c-program.ts';
import { startManyThreads } from '../support/many-threads.ts';
import { type BenchResult, ratioOf } from '../support/timing.ts';

const THREADS = 256;
const ROUNDS = 100;

/** The work of bench/support/affinity.c through the bindings: milliseconds of each round. */
function applyInTurns(affinity: Affinity, pid: number): number[] {
  const all = affinity.get(process.pid);
  const one = new Uint32Array(all.length);
  const word = all.findIndex((bits) => bits !== 0);
  one[word] = all[word]! & -all[word]!;
  return Array.from({ length: ROUNDS }, (_, round) => {
    const goal = round % 2 === 0 ? one : all;
    const begun = performance.now();
    for (const name of readdirSync(`/proc/${pid}/task`)) {
      const tid = Number(name);
      if (affinity.get(tid)[word] === goal[word]) continue;
      affinity.set(tid, goal);
      affinity.get(tid);
    }
    return performance.now() - begun;
  });
}

/** The bindings' three calls for each of 256 threads relative to the same calls in C, including reading /proc. */
export async function affinityOverC(): Promise<BenchResult> {
  const program = compile('support/affinity.c');
  const threads = await startManyThreads(['ovs-vswitchd'], THREADS);
  const [pid = 0] = threads.pids;
  const affinity = createAffinity();
  try {
    return ratioOf(
      'native.affinity-256-threads-over-c',
      { most: 3 },
      () => median(applyInTurns(affinity, pid)),
      () => median(program.run(pid, ROUNDS)) / 1000,
    );
  } finally {
    threads.stop();
    program.remove();
  }
}
