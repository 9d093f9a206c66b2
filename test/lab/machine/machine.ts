import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { monotonicSeconds, sleep } from '../../../runtime/time.ts';
import { aggregation } from '../../real/certificates-fixture.ts';
import { binary, type ControlPlane, startControlPlane } from '../../real/control-plane-stage.ts';
import { freePort, type Program, startProgram } from '../../support/processes.ts';
import { makeBase } from './base.ts';
import { createShell, explaining, lastWords, type Shell, type Traces, whyNotReady } from './diagnosis.ts';
import { LAYOUTS, type LayoutName } from './layouts.ts';
import { debianMirror } from './missing.ts';
import { linkMac, nodeFiles, nodeName, nodeToken, peerOf } from './node-files.ts';
import type { Layer } from './oci-archive.ts';
import { makeParts } from './parts.ts';
import type { Places } from './places.ts';
import { type Link, type MakeDisks, type QemuOptions, qemuArguments } from './qemu.ts';

/** Timeouts of the emulation in seconds: about thirty times the duration on two free cores. */
const SSH_WITHIN = 900;
const BOOTED_WITHIN = 900;
const READY_WITHIN = 600;

/**
 * QEMU's emulation of several CPUs sometimes crashes while a kernel starts, or the kernel panics while it patches its own
 * code, and QEMU ends with 0 instead of a reboot. Only the start is lost.
 */
const ATTEMPTS = 3;
const CRASHED = /^QEMU ended with (0|SIG(SEGV|ABRT|BUS|ILL))\b/;

export interface Machines extends Omit<Running, 'guests'> {
  readonly guests: readonly Guest[];
  keep(): Promise<void>;
  stop(): Promise<void>;
}

export interface Guest {
  readonly places: Places;
  readonly shell: Shell;
}

export interface MachinesOptions {
  readonly places: readonly Places[];
  readonly layout: LayoutName;
  /** More files as disks of the guests; called once their kernel exists. */
  readonly makeDisks: MakeDisks;
  readonly say: (what: string) => void;
  readonly signal: AbortSignal;
}

/** Boots machines with a control plane on loopback, until they can run pods. @throws Error with the guest's state */
export async function startMachines(options: MachinesOptions): Promise<Machines> {
  const { places: all, layout, makeDisks, say } = options;
  const [first] = all as [Places];
  await makeBase(first, await debianMirror(), say);
  const disks = await makeDisks(first, say);
  await rm(first.run, { recursive: true, force: true });
  for (const places of all) await mkdir(places.run, { recursive: true });
  await writeRunning(first);
  const tokens = all.map(() => randomBytes(16).toString('hex'));
  say('control plane');
  const plane = await startControlPlane({
    tokens: tokens.map((token, index) => nodeToken(index, token)),
    podTokens: true,
    apiServerArgs: aggregation(first.run),
  });
  const guests: Program[] = [];
  const stop = async () => {
    for (const guest of guests) await guest.stop();
    await plane.stop();
    for (const places of all) await rm(places.parts, { force: true });
    await rm(first.running, { force: true });
  };
  const start = async (places: Places, index: number) => {
    const port = Number(new URL(plane.url).port);
    const node = { index, hasPeer: all.length > 1, ca: plane.ca, port, token: tokens[index]! };
    const nodeLayer = await makeParts(places, binary('kubelet'), nodeFiles(node));
    const sshPort = await freePort();
    const shell = createShell(places, sshPort);
    const qemu = { places, layout: LAYOUTS[layout], sshPort, disks, link: linkOf(all, index) };
    for (let attempt = 1; ; attempt++) {
      say(`booting ${nodeName(index)}`);
      const program = startGuest(qemu);
      guests.push(program);
      const traces = { qemu: program, serialLog: places.serialLog };
      const boot = { index, guest: program, shell, plane, traces };
      const failure = await booted(boot, options).catch((error: Error) => error);
      if (failure === undefined)
        return { places, shell: explaining(shell, traces), qemu: program.pid, sshPort, nodeLayer };
      if (attempt === ATTEMPTS || !CRASHED.test(failure.message)) throw failure;
      say(failure.message);
    }
  };
  try {
    await plane.startControllers();
    await plane.startScheduler({});
    const started = await Promise.all(all.map(start));
    const running = {
      layout,
      kubeconfig: plane.adminKubeconfig,
      nodeLayer: started[0]!.nodeLayer,
      guests: started.map(({ qemu, sshPort }) => ({ qemu, sshPort })),
    };
    return { ...running, guests: started, keep: () => writeRunning(first, running), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The machines that another run keeps, if any. Only that run ends them. */
export async function findMachines(places: readonly Places[]): Promise<Machines | undefined> {
  const running = await readRunning(places[0]!);
  if (running === undefined) return undefined;
  const guests = await Promise.all(
    running.guests.map(async ({ qemu, sshPort }, index) => {
      const own = places[index]!;
      const ended = (await commandLineOf(qemu)) === '' ? 'no status that this run knows: it is not its own' : undefined;
      const traces = { qemu: { ended, logFile: qemuLog(own) }, serialLog: own.serialLog };
      return { places: own, shell: explaining(createShell(own, sshPort), traces) };
    }),
  );
  return { ...running, guests, keep: async () => {}, stop: async () => {} };
}

const qemuLog = ({ run }: Places): string => `${run}/qemu.log`;

function linkOf(all: readonly Places[], index: number): Link | undefined {
  const [own, other] = [all[index], all[peerOf(index)]].map((places) => places && `${places.run}/peer.socket`);
  return own !== undefined && other !== undefined ? { own, other, mac: linkMac(index) } : undefined;
}

/** It ends with this process, however this ends. */
function startGuest(qemu: QemuOptions): Program {
  const { places } = qemu;
  const command = ['--pdeathsig', 'KILL', 'nice', '-n', '10', 'env', `TMPDIR=${places.run}`, 'qemu-system-x86_64'];
  return startProgram('qemu', '/usr/bin/setpriv', [...command, ...qemuArguments(qemu)], qemuLog(places));
}

/** Waiting longer would not help. */
class Hopeless extends Error {}

interface Boot {
  readonly index: number;
  readonly guest: Program;
  readonly shell: Shell;
  readonly plane: ControlPlane;
  readonly traces: Traces;
}

async function booted(
  { index, guest, shell, plane, traces }: Boot,
  { say, signal }: Pick<MachinesOptions, 'say' | 'signal'>,
): Promise<void> {
  const until = async (what: string, seconds: number, holds: () => Promise<boolean>) => {
    const end = monotonicSeconds() + seconds;
    const check = () =>
      holds().catch((error: unknown) => {
        if (error instanceof Hopeless) return error;
        return false;
      });
    for (let held = await check(); held !== true; held = await check()) {
      if (guest.ended !== undefined) throw new Error(await lastWords(traces));
      const why = held instanceof Hopeless ? held.message : `not within ${seconds} s`;
      if (held instanceof Hopeless || monotonicSeconds() > end) {
        throw new Error(`${what}: ${why}\n${await whyNotReady(shell, traces)}`);
      }
      await sleep(1, signal);
    }
    say(`${nodeName(index)}: ${what}`);
  };
  await until('ssh answers', SSH_WITHIN, async () => (await shell.run('echo here')).includes('here'));
  // Everything that the boot starts: images, addresses, Open vSwitch. A kubelet is Ready before some of it.
  await until('every unit has started', BOOTED_WITHIN, async () => {
    const state = (await shell.run('systemctl is-system-running --wait || true')).trim();
    if (state === 'degraded') throw new Hopeless('a unit failed');
    return state === 'running';
  });
  const boot = (await shell.run('cat /proc/sys/kernel/random/boot_id')).trim();
  await until('the node is Ready', READY_WITHIN, async () =>
    isReady(await plane.client.get(`/api/v1/nodes/${nodeName(index)}`), boot),
  );
}

function isReady(node: unknown, boot: string): boolean {
  const { spec, status } = node as {
    readonly spec: { readonly taints?: readonly unknown[] };
    readonly status: {
      readonly nodeInfo: { readonly bootID: string };
      readonly conditions: readonly { readonly type: string; readonly status: string }[];
    };
  };
  const ready = status.conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
  return ready && status.nodeInfo.bootID === boot && (spec.taints ?? []).length === 0;
}

/** Running machines, published for other runs. */
interface Running {
  readonly layout: LayoutName;
  readonly guests: readonly { readonly qemu: number; readonly sshPort: number }[];
  readonly kubeconfig: string;
  readonly nodeLayer: Layer;
}

type Entry = { readonly pid: number } & (Running | { readonly guests?: undefined });

/** Records that this process starts or uses a machine, or which machine it keeps for others. */
async function writeRunning(places: Places, kept?: Running): Promise<void> {
  await writeFile(places.running, JSON.stringify({ pid: process.pid, ...kept }));
}

/**
 * The machine that another run keeps; undefined if no run has one.
 * @throws Error if another run starts or uses one itself: two runs would remove each other's files, pods and finally
 * the machine
 */
async function readRunning(places: Places): Promise<Running | undefined> {
  const text = await readFile(places.running, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const entry = JSON.parse(text) as Entry;
  const { pid } = entry;
  if (!(await commandLineOf(pid)).includes('test/lab')) return undefined;
  if (entry.guests === undefined) {
    throw new Error(
      `another run (process ${pid}) has the lab's machine: wait for its end, or set another XDG_CACHE_HOME for a second lab`,
    );
  }
  return entry;
}

async function commandLineOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
}
