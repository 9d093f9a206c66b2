import { readdirSync, readFileSync } from 'node:fs';
import { CpuSet } from '../../model/cpu-set.ts';
import { LauncherPinning } from '../../node-agent/vm-pinning/launcher-pinning.ts';
import { compile } from '../support/c-program.ts';
import { type BenchResult, ratioOf, sink } from '../support/timing.ts';
import { type Host, startHost } from './host.ts';

const VCPUS = 64;
const ROUNDS = 100;
const GUESTS = 100;
const PROCESSES = 5000;

/** The 10th percentile: a round without interruptions by other processes, which affect most rounds on a busy machine. */
function undisturbed(rounds: readonly number[]): number {
  return [...rounds].sort((a, b) => a - b)[Math.floor(rounds.length / 10)] ?? Number.NaN;
}

/** One pass of the agent over a guest that moves all its vCPUs, relative to the bare calls in C for as many threads. */
async function pinOverC(): Promise<BenchResult> {
  const program = compile('support/affinity.c');
  const host = await startHost(1, VCPUS, 0);
  const [pid = 0] = host.pids;
  const [launcher] = host.launchers;
  const keeper = new LauncherPinning(host.parts);
  const cpu = host.all.first ?? 0;
  const one = CpuSet.of([cpu]);
  const rounds = () =>
    Array.from({ length: ROUNDS }, (_, round) => {
      const maskRequest = { mask: { entries: [round % 2 === 0 ? one : host.all] }, fixMismatch: false };
      const begun = performance.now();
      sink.value += keeper.reconcile({ ...launcher!, maskRequest }, host.node).mask?.moved ?? 0;
      return performance.now() - begun;
    });
  // Both run on the same CPU, since the lock of a thread's runqueue costs several times as much from another one.
  const inTurns = () => {
    const { affinity } = host.parts;
    affinity.set(process.pid, one.toWords());
    try {
      return rounds();
    } finally {
      affinity.set(process.pid, host.all.toWords());
    }
  };
  try {
    // Long enough that every thread's name counts as permanent.
    inTurns();
    await new Promise((resolve) => setTimeout(resolve, 1100));
    return ratioOf(
      'vm-pinning.64-vcpu-threads-over-c',
      { most: 3 },
      () => undisturbed(inTurns()),
      () => undisturbed(program.run(pid, ROUNDS, cpu)) / 1000,
    );
  } finally {
    host.stop();
    program.remove();
  }
}

/** The reads of an alternative: the cgroup of every process. */
function walkProc(): number {
  const begun = process.cpuUsage();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      sink.value += readFileSync(`/proc/${name}/cgroup`, 'utf8').length;
    } catch {
      // The process has ended.
    }
  }
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}

/** @returns milliseconds of processor time to find every guest and to identify and read its threads */
function discover({ launchers, parts, node }: Host): number {
  const begun = process.cpuUsage();
  const views = launchers.map((launcher) => new LauncherPinning(parts).reconcile(launcher, node));
  const { user, system } = process.cpuUsage(begun);
  if (views.some(({ mask }) => mask?.state !== 'pinned')) throw new Error('not every guest was found');
  return (user + system) / 1000;
}

async function discovery(): Promise<BenchResult> {
  const host = await startHost(GUESTS, 4, PROCESSES - GUESTS);
  try {
    discover(host);
    return ratioOf('vm-pinning.discovery-100-vms-over-proc-walk', { most: 1 }, () => discover(host), walkProc);
  } finally {
    host.stop();
  }
}

/** All measurements of vm-pinning, in the order of the output. */
export const VM_PINNING_BENCHES: readonly (() => Promise<BenchResult>)[] = [pinOverC, discovery];
