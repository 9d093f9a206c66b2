import { CpuSet } from '../../model/cpu-set.ts';
import { createAffinity } from '../../native/affinity.ts';
import { createProcessAffinity, type ProcessAffinity } from '../../node-agent/ovs-affinity/process-affinity.ts';
import { procThreads } from '../../node-agent/processes/threads.ts';
import { compile, median } from '../support/c-program.ts';
import { startManyThreads } from '../support/many-threads.ts';
import { type BenchResult, ratioOf } from '../support/timing.ts';

const THREADS = 256;
const ROUNDS = 100;

function applyInTurns(keeper: ProcessAffinity, all: CpuSet): number[] {
  const one = CpuSet.of([all.first ?? 0]);
  return Array.from({ length: ROUNDS }, (_, round) => {
    const begun = performance.now();
    keeper.apply({ only: round % 2 === 0 ? one : all });
    return performance.now() - begun;
  });
}

/**
 * One pass of the agent over the threads, relative to the bare calls in C: identifying PMD threads, waiting for names,
 * checking.
 */
export async function affinityOverC(): Promise<BenchResult> {
  const program = compile('support/affinity.c');
  const daemon = await startManyThreads(['ovs-vswitchd'], THREADS);
  const [pid = 0] = daemon.pids;
  const affinity = createAffinity();
  const all = CpuSet.fromWords(affinity.get(process.pid));
  const parts = { affinity, threads: procThreads, machine: () => all, now: () => performance.now() };
  const keeper = createProcessAffinity({ name: 'ovs-vswitchd', role: 'daemon', pid, start: 0 }, parts);
  try {
    // Long enough that every thread's name counts as permanent, as in a running daemon.
    keeper.snapshot();
    await new Promise((resolve) => setTimeout(resolve, 1100));
    return ratioOf(
      'node-agent.affinity-256-threads-over-c',
      { most: 3 },
      () => median(applyInTurns(keeper, all)),
      () => median(program.run(pid, ROUNDS)) / 1000,
    );
  } finally {
    daemon.stop();
    program.remove();
  }
}
