import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Counter, Gauge } from 'prom-client';
import type { EventRecorder, EventText } from '../../kube/events.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { createHost } from '../../model/host.ts';
import { type AssignmentsView, UNKNOWN_VIEW } from '../../node-agent/assignments/view.ts';
import { createAgentMetrics } from '../../node-agent/telemetry/metrics.ts';
import { Registry } from '../../runtime/metrics.ts';
import { recordingLogger } from '../support/logger.ts';

export { eventually } from '../support/eventually.ts';
export { replaceFile, tempDirectories, writeTree } from '../support/files.ts';
export { turns, useVirtualClock } from '../support/virtual-clock.ts';
export { recordingLogger };

export const set = (text: string): CpuSet => CpuSet.parse(text);
export const testMetrics = () => createAgentMetrics(new Registry());

/** Whether a server accepts connections there: a socket's file exists before that. */
export const isListening = (socketPath: string) =>
  new Promise<boolean>((resolve) => {
    const socket = createConnection(socketPath);
    socket.on('error', () => resolve(false));
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });

/** The values of a metric by those of its labels: `irq,EINVAL`. */
export const valuesOf = async (metric: Pick<Counter | Gauge, 'get'>): Promise<Record<string, number>> =>
  Object.fromEntries((await metric.get()).values.map(({ labels, value }) => [Object.values(labels).join(), value]));

/** Level and message of each line: `40 recovered`. */
export const messagesOf = ({ lines }: Pick<ReturnType<typeof recordingLogger>, 'lines'>) =>
  lines.map(({ level, msg }) => `${level} ${msg}`);

/** For a suite: starts duties, which end after each test, or earlier with the returned function. */
export function useDuties() {
  const ends: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(ends.splice(0).map((end) => end()));
  });
  return (duty: { run(signal: AbortSignal): Promise<unknown> }) => {
    const stop = new AbortController();
    const done = duty.run(stop.signal);
    const end = async () => {
      stop.abort();
      await done;
    };
    ends.push(end);
    return end;
  };
}

/** Two NUMA nodes of two cores of two threads. */
export const TWO_CELLS = {
  cells: [
    { id: 0, cpus: '0-3' },
    { id: 1, cpus: '4-7' },
  ],
  cores: ['0-1', '2-3', '4-5', '6-7'],
};
export const twoCells = createHost(TWO_CELLS);

/** A view of assignments that a test controls. */
export function settableView(initial: Partial<AssignmentsView> = {}) {
  let view: AssignmentsView = { ...UNKNOWN_VIEW, problems: [], holds: [], ...initial };
  const listeners = new Set<(view: AssignmentsView, at: number) => void>();
  return {
    view: () => view,
    subscribe(listener: (view: AssignmentsView, at: number) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    set(next: Partial<AssignmentsView>) {
      view = { ...view, ...next };
      for (const listener of listeners) listener(view, performance.now());
    },
    /** Free CPUs as a list, or undefined if unknown; and the owned CPUs. */
    free(text: string | undefined, owned = '') {
      this.set({ free: text === undefined ? undefined : set(text), owned: set(owned) });
    },
  };
}

/** Takes Events; `about` names the object with its uid. */
export function recordingEvents() {
  const events: (EventText & { readonly about: string })[] = [];
  const recorder: EventRecorder = {
    record({ apiVersion, kind, namespace, name, uid }, event) {
      events.push({ about: `${apiVersion} ${kind} ${namespace}/${name} ${uid}`, ...event });
    },
    flush: async () => {},
  };
  return { events, recorder };
}

export interface StandIn {
  readonly pid: number;
  stop(): Promise<void>;
}

const STAND_IN = fileURLToPath(new URL('ovs-stand-in.cjs', import.meta.url));

/** Starts a real process with the name of an OVS daemon and the given number of threads in addition to Node's. */
export async function startStandIn(name: string, threads: number, pidfile: string): Promise<StandIn> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => key !== 'NODE_OPTIONS'));
  const child = spawn(process.execPath, [STAND_IN, name, String(threads), pidfile], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env,
  });
  await once(child.stdout!, 'data');
  return {
    pid: child.pid!,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** A locked file stays open across exec, so the program has the lock from its first instruction. */
const LOCK_AND_EXEC = `use Fcntl; $^F = 255; my ($file, @command) = @ARGV; open(my $pidfile, '>', "$file.tmp") or die;
my $lock = pack('s s x4 q q i x4', F_WRLCK, 0, 0, 0, 0); fcntl($pidfile, F_SETLK, $lock) or die; syswrite($pidfile, "$$\\n");
rename("$file.tmp", $file); my $program = shift @command; exec {$program} @command;`;

/** A command that writes and locks a pidfile as Open vSwitch's daemons do, then becomes `program` with this argv. */
export function lockingCommand(pidfile: string, program: string, argv: readonly string[]): readonly string[] {
  return ['perl', '-e', LOCK_AND_EXEC, pidfile, program, ...argv];
}

/** Cpus_allowed_list of every thread of a process, from the kernel. */
export function allowedLists(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((tid) => {
    const status = readFileSync(`/proc/${pid}/task/${tid}/status`, 'utf8');
    return /Cpus_allowed_list:\s*(\S+)/.exec(status)?.[1] ?? '';
  });
}
