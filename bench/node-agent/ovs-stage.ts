import { type ChildProcess, fork, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { CpuSet } from '../../model/cpu-set.ts';
import { createAffinity } from '../../native/affinity.ts';
import { procThreads } from '../../node-agent/processes/proc.ts';
import { FakeKubelet } from '../../test/node-agent/kubelet-stand-in.ts';
import { bundleProgram } from '../../test/support/bundle-program.ts';
import { endChild } from '../../test/support/children.ts';
import { eventually } from '../../test/support/eventually.ts';
import { shippedNodeOptions } from '../../test/support/shipped.ts';
import { compile } from '../support/c-program.ts';
import { root } from '../support/process.ts';
import { renameCheckpoint } from './agent-process.ts';

/** The program that moves the threads. After each move it sends or prints the machine's monotonic nanoseconds. */
export interface Reactor {
  readonly pid: number;
  /** Resolves with the time of the next move. */
  moved(): Promise<bigint>;
  stop(): Promise<void>;
}

export type OvsScene = Awaited<ReturnType<typeof createOvsScene>>;

/** Processes with the names and the pidfiles of Open vSwitch's daemons. */
export interface OvsDaemons {
  readonly pids: readonly number[];
  /** The directory with their pidfiles. */
  readonly rundir: string;
  stop(): void | Promise<void>;
}

/**
 * Two daemons with many threads, a kubelet that assigns CPUs, and the program that keeps the daemons off these CPUs.
 * @param daemons stopped with the scene
 */
export async function createOvsScene(daemons: OvsDaemons) {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-bench-'));
  for (const name of ['etc', 'kubelet']) mkdirSync(join(directory, name));
  writeFileSync(join(directory, 'etc/enable'), '1');
  const reaction = compile('node-agent/reaction.c');
  symlinkSync(daemons.rundir, join(directory, 'run'));
  const { pids } = daemons;
  const affinity = createAffinity();
  const all = CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8'));
  const first = CpuSet.of([all.first!]);
  const assigned = all.minus(first);
  const kubelet = new FakeKubelet(join(directory, 'kubelet'));
  kubelet.allocatable = assigned.toString();
  kubelet.writeCheckpoint(all.toString());
  await kubelet.start();

  return {
    all,
    first,
    /** Assigns every CPU but the first to a pod, by a rename. @returns the machine's monotonic nanoseconds just before */
    assign(): bigint {
      kubelet.pods = { 'ns/pod': { compute: assigned.toString() } };
      const entries = { uid: { compute: assigned.toString() } };
      const state = { policyName: 'static', defaultCpuSet: first.toString(), entries, checksum: 1 };
      return renameCheckpoint(join(directory, 'kubelet'), state);
    },
    /** Releases the CPUs. */
    release() {
      kubelet.pods = {};
      kubelet.writeCheckpoint(all.toString());
    },
    /** Whether every thread may run on exactly these CPUs. */
    isOn: (cpus: CpuSet) =>
      pids.every((pid) => procThreads.list(pid).every((tid) => CpuSet.fromWords(affinity.get(tid)).equals(cpus))),
    agent: () => script('test/node-agent/ovs-affinity/program-stage.ts', directory),
    upstream: () => script('bench/node-agent/upstream-loop.ts', directory),
    inC: () => program(reaction.path, [join(directory, 'kubelet'), ...pids.map(String)]),
    async remove() {
      await daemons.stop();
      await kubelet.stop();
      reaction.remove();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Runs a program in the same way as the agent: bundled in one file, with the heap limit of the shipped manifest. */
async function script(file: string, directory: string): Promise<Reactor> {
  const outfile = await bundleProgram(file, join(directory, `${basename(file, '.ts')}.cjs`), {
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(join(root, file))) },
  });
  const env = { ...process.env, NODE_PATH: join(root, 'node_modules'), ...shippedNodeOptions('node-agent') };
  const stdio: StdioOptions = ['ignore', 'ignore', 'ignore', 'ipc'];
  const child = fork(outfile, [directory], { execArgv: [], env, stdio });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`${file} ended with status ${code}`);
  });
  await Promise.race([once(child, 'message'), ended]);
  // From now on it may exit.
  ended.catch(() => undefined);
  return reactor(child, (tell) => child.on('message', ({ done }: { done: string }) => tell(BigInt(done))));
}

async function program(path: string, args: string[]): Promise<Reactor> {
  const child = spawn(path, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return reactor(child, (tell) => child.stdout.on('data', (chunk: Buffer) => tell(BigInt(chunk.toString().trim()))));
}

function reactor(child: ChildProcess, listen: (tell: (at: bigint) => void) => void): Reactor {
  let onNotice = (_at: bigint) => {};
  listen((at) => onNotice(at));
  return {
    pid: child.pid!,
    moved: () =>
      new Promise((resolve) => {
        onNotice = resolve;
      }),
    stop: async () => void (await endChild(child, 'SIGKILL')),
  };
}

/** Waits until the threads are on their CPUs and no work is pending before the next measurement. */
export async function settled(scene: OvsScene, cpus: CpuSet): Promise<void> {
  await eventually(() => scene.isOn(cpus), `every thread on ${cpus}`);
  await new Promise((resolve) => setTimeout(resolve, 80));
}
