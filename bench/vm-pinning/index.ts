import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseMask } from '../../model/cpu-mask/mask.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import { createAffinity } from '../../native/affinity.ts';
import { CgroupTree } from '../../node-agent/processes/cgroup-tree.ts';
import { procThreads } from '../../node-agent/processes/proc.ts';
import { procProcesses } from '../../node-agent/vm-pinning/guest.ts';
import {
  LauncherPinning,
  type LauncherPinningParts,
  type NodeCpus,
} from '../../node-agent/vm-pinning/launcher-pinning.ts';
import type { Launcher } from '../../node-agent/vm-pinning/launchers.ts';
import { compile } from '../support/c-program.ts';
import { type BenchResult, ratioOf, sink } from '../support/timing.ts';

/** A host with real processes that look like guests; their cgroups are files. */
interface Host {
  readonly pids: readonly number[];
  readonly launchers: readonly Launcher[];
  readonly parts: LauncherPinningParts;
  readonly node: NodeCpus;
  /** All CPUs of this machine. */
  readonly all: CpuSet;
  stop(): void;
}

/** Number of processes in a launcher in addition to QEMU: virt-launcher and libvirt's daemons. */
const OTHER_PROCESSES = 5;

/** @param others number of processes that are not guests */
async function startHost(guests: number, vcpus: number, others: number): Promise<Host> {
  const program = compile('vm-pinning/processes.c');
  const root = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  const child = spawn(program.path, [guests, vcpus, others].map(String), { stdio: ['pipe', 'pipe', 'inherit'] });
  const pids: number[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'ready') break;
    pids.push(Number(line));
  }
  const affinity = createAffinity();
  const all = CpuSet.fromWords(affinity.get(process.pid));
  writeFileSync(join(root, 'cgroup.controllers'), 'cpuset');
  const launchers = pids.map((pid, i) => {
    const launcher = launcherOf(i, all);
    const slice = `kubepods-burstable-pod${launcher.uid.replaceAll('-', '_')}.slice`;
    const path = join(
      root,
      'kubepods.slice/kubepods-burstable.slice',
      slice,
      `cri-containerd-${launcher.containerId}.scope`,
    );
    mkdirSync(path, { recursive: true });
    const others = Array.from({ length: OTHER_PROCESSES }, (_, n) => pid + guests + i * OTHER_PROCESSES + n);
    writeFileSync(join(path, 'cgroup.procs'), `${[pid, ...others].join('\n')}\n`);
    writeFileSync(join(path, 'cpuset.cpus.effective'), `${all}\n`);
    return launcher;
  });
  return {
    pids,
    launchers,
    all,
    parts: {
      affinity,
      threads: procThreads,
      processes: procProcesses,
      tree: new CgroupTree(root),
      // Only written when a VM is pinned for the first time, which is not measured.
      record: { scope: () => undefined, save: () => undefined, forget: () => undefined },
      nowSeconds: () => performance.now() / 1000,
    },
    node: {
      host: createHost({ cells: [{ id: 0, cpus: String(all) }], cores: [...all].map(String) }),
      reserved: CpuSet.EMPTY,
      owned: CpuSet.EMPTY,
      dedicated: new Set(),
    },
    stop() {
      child.kill('SIGKILL');
      program.remove();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function launcherOf(i: number, cpus: CpuSet): Launcher {
  const uid = `00000000-0000-0000-0000-${String(i).padStart(12, '0')}`;
  return {
    uid,
    namespace: 'team-a',
    podName: `virt-launcher-${i}`,
    vmi: { name: `vm-${i}`, uid: `vmi-${i}` },
    migrated: false,
    maskRequest: { mask: parseMask(cpus.toString()), fixMismatch: false },
    problem: undefined,
    containerId: `c0ffee${i}`,
  };
}

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
      3,
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
    return ratioOf('vm-pinning.discovery-100-vms-over-proc-walk', 1, () => discover(host), walkProc);
  } finally {
    host.stop();
  }
}

/** All measurements of vm-pinning, in the order of the output. */
export const VM_PINNING_BENCHES: readonly (() => Promise<BenchResult>)[] = [pinOverC, discovery];
