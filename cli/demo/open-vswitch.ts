import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { startDaemon } from './daemons.ts';
import { until } from './until.ts';

const DAEMON_NAMES = ['ovs-vswitchd', 'ovsdb-server'] as const;
const SYSTEM_RUNDIR = '/var/run/openvswitch';
const THREAD_COUNT = 6;

export interface SwitchProcesses {
  readonly kind: 'Open vSwitch' | 'stand-ins';
  readonly rundir: string;
  readonly pids: readonly number[];
  threads(): Promise<readonly CpuSet[]>;
  stop(): Promise<void>;
}

/** This machine's own Open vSwitch if it runs, else two stand-ins with real threads. @param standIns in any case */
export async function openVswitch(
  dist: string,
  directory: string,
  {
    standIns = false,
    physnets = {},
  }: { standIns?: boolean; physnets?: Readonly<Record<string, readonly number[]>> } = {},
): Promise<SwitchProcesses> {
  const running = standIns ? undefined : await runningPids(SYSTEM_RUNDIR);
  if (running !== undefined && process.getuid?.() === 0) {
    const threads = () => threadCpus(running);
    return { kind: 'Open vSwitch', rundir: SYSTEM_RUNDIR, pids: running, threads, stop: async () => undefined };
  }
  const rundir = join(directory, 'ovs');
  await mkdir(rundir, { recursive: true });
  const program = join(dist, 'ovs-stand-in.cjs');
  const networks = Object.entries(physnets).flatMap(([name, cells]) => ['--physnet', `${name}=${cells[0] ?? 0}`]);
  const args = ['--rundir', rundir, '--threads', String(THREAD_COUNT), ...networks];
  const standInDaemons = DAEMON_NAMES.map((name) =>
    startDaemon({ name, program, args: ['--name', name, ...args], directory }),
  );
  const pids = await until('the stand-ins for Open vSwitch', 10, () => {
    for (const daemon of standInDaemons) daemon.assertAlive();
    return runningPids(rundir);
  });
  const stop = async () => {
    await Promise.all(standInDaemons.map((daemon) => daemon.stop()));
  };
  return { kind: 'stand-ins', rundir, pids, threads: () => threadCpus(pids), stop };
}

async function runningPids(rundir: string): Promise<number[] | undefined> {
  const pids: number[] = [];
  for (const name of DAEMON_NAMES) {
    const pid = Number(await readFile(join(rundir, `${name}.pid`), 'utf8').catch(() => ''));
    const comm = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '');
    if (pid <= 0 || comm.trim() !== name) return undefined;
    pids.push(pid);
  }
  return pids;
}

export async function threadCpus(pids: readonly number[]): Promise<CpuSet[]> {
  return (await kernelThreads(pids)).map(({ cpus }) => CpuSet.parse(cpus));
}

export async function kernelThreads(pids: readonly number[]) {
  const threads: { tid: number; name: string; cpus: string }[] = [];
  for (const pid of pids) {
    for (const tid of await readdir(`/proc/${pid}/task`).catch(() => [])) {
      // Empty for a thread that has ended in the meantime.
      const status = await readFile(`/proc/${pid}/task/${tid}/status`, 'utf8').catch(() => '');
      const [, name, cpus] = /^Name:\t(.*)$[\s\S]*^Cpus_allowed_list:\s*(.*)$/m.exec(status) ?? [];
      if (name !== undefined && cpus !== undefined) threads.push({ tid: Number(tid), name, cpus });
    }
  }
  return threads.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
}
