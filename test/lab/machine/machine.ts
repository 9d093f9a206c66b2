import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { monotonicSeconds, sleep } from '../../../runtime/time.ts';
import { aggregation } from '../../real/aggregation.ts';
import { binary, type ControlPlane, startControlPlane } from '../../real/control-plane.ts';
import { freePort, type Program, startProgram } from '../../real/processes.ts';
import { makeBase } from './base.ts';
import { explaining, lastWords, type Traces, whyNotReady } from './diagnosis.ts';
import { LAYOUTS, type Layout, type LayoutName } from './layouts.ts';
import { debianMirror } from './missing.ts';
import { NODE, nodeFiles, nodeToken } from './node-files.ts';
import type { Layer } from './oci-archive.ts';
import { makeParts } from './parts.ts';
import type { Places } from './places.ts';
import { type Disks, type MakeDisks, qemuArguments } from './qemu.ts';
import { commandLineOf, readRunning, writeRunning } from './running.ts';
import { createShell, type Shell } from './ssh.ts';

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

/** A running machine, with the cluster whose only node it is. */
export interface Machine {
  readonly layout: LayoutName;
  readonly kubeconfig: string;
  readonly sshPort: number;
  readonly shell: Shell;
  /** The layer of the guest's image with Node.js. */
  readonly nodeLayer: Layer;
  /** Publishes it for other runs. */
  keep(): Promise<void>;
  /** Ends everything; nothing of the guest is kept except its diagnosis. */
  stop(): Promise<void>;
}

/**
 * Boots it with a control plane on loopback, and returns when it can run pods.
 * @param makeDisks more files as disks of the guest; called once its kernel exists
 * @param say reports slow steps in a few words
 * @throws Error with the activity of the guest at a timeout
 */
export async function startMachine(
  places: Places,
  layout: LayoutName,
  makeDisks: MakeDisks,
  say: (what: string) => void,
  signal: AbortSignal,
): Promise<Machine> {
  await makeBase(places, await debianMirror(), say);
  const disks = await makeDisks(places, say);
  await rm(places.run, { recursive: true, force: true });
  await mkdir(places.run, { recursive: true });
  await writeRunning(places);
  const token = randomBytes(16).toString('hex');
  say('control plane');
  const plane = await startControlPlane({
    tokens: [nodeToken(token)],
    podTokens: true,
    apiServerArgs: aggregation(places.run),
  });
  let guest: Program | undefined;
  const stop = async () => {
    await guest?.stop();
    await plane.stop();
    await rm(places.parts, { force: true });
    await rm(places.running, { force: true });
  };
  try {
    await plane.startControllers();
    await plane.startScheduler({});
    const port = Number(new URL(plane.url).port);
    const nodeLayer = await makeParts(places, binary('kubelet'), nodeFiles({ ca: plane.ca, port, token }));
    const sshPort = await freePort();
    const shell = createShell(places, sshPort);
    let traces: Traces;
    for (let attempt = 1; ; attempt++) {
      say('booting');
      guest = startGuest(places, LAYOUTS[layout], sshPort, disks);
      traces = { qemu: guest, serialLog: places.serialLog };
      const failure = await booted(guest, shell, plane, traces, say, signal).catch((error: Error) => error);
      if (failure === undefined) break;
      if (attempt === ATTEMPTS || !CRASHED.test(failure.message)) throw failure;
      say(failure.message);
    }
    const running = { layout, qemu: guest.pid, sshPort, kubeconfig: plane.adminKubeconfig, nodeLayer };
    return { ...running, shell: explaining(shell, traces), keep: () => writeRunning(places, running), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The machine that another run keeps, if any. Only that run ends it. */
export async function findMachine(places: Places): Promise<Machine | undefined> {
  const running = await readRunning(places);
  if (running === undefined) return undefined;
  const { layout, qemu, sshPort, kubeconfig, nodeLayer } = running;
  const ended = (await commandLineOf(qemu)) === '' ? 'no status that this run knows: it is not its own' : undefined;
  const traces = { qemu: { ended, logFile: qemuLog(places) }, serialLog: places.serialLog };
  const shell = explaining(createShell(places, sshPort), traces);
  return { layout, kubeconfig, sshPort, shell, nodeLayer, keep: async () => {}, stop: async () => {} };
}

const qemuLog = ({ run }: Places): string => `${run}/qemu.log`;

/** It ends with this process, however this ends. */
function startGuest(places: Places, layout: Layout, sshPort: number, disks: Disks): Program {
  const command = ['--pdeathsig', 'KILL', 'nice', '-n', '10', 'env', `TMPDIR=${places.run}`, 'qemu-system-x86_64'];
  return startProgram(
    'qemu',
    '/usr/bin/setpriv',
    [...command, ...qemuArguments(places, layout, sshPort, disks)],
    qemuLog(places),
  );
}

/** Waiting longer would not help. */
class Hopeless extends Error {}

async function booted(
  guest: Program,
  shell: Shell,
  plane: ControlPlane,
  traces: Traces,
  say: (what: string) => void,
  signal: AbortSignal,
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
    say(what);
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
    isReady(await plane.client.get(`/api/v1/nodes/${NODE}`), boot),
  );
}

/** Ready according to this boot's kubelet, and without the initial taint. */
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
