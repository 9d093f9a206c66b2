import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { monotonicSeconds, sleep } from '../../../runtime/time.ts';
import { aggregation } from '../../real/aggregation.ts';
import { binary, type ControlPlane, startControlPlane } from '../../real/control-plane.ts';
import { freePort, type Program, startProgram } from '../../real/processes.ts';
import { makeBase } from './base.ts';
import { whyNotReady } from './diagnosis.ts';
import { debianMirror } from './missing.ts';
import { NODE, nodeFiles, nodeToken } from './node-files.ts';
import type { Layer } from './oci-archive.ts';
import { makeParts } from './parts.ts';
import type { Places } from './places.ts';
import { type Disks, type MakeDisks, qemuArguments } from './qemu.ts';
import { createShell, type Shell } from './ssh.ts';

/** Seconds that emulation may take for each: about thirty times what it takes on two free cores. */
const SSH_WITHIN = 900;
const BOOTED_WITHIN = 900;
const READY_WITHIN = 600;

/** QEMU's emulation of several CPUs at once crashes now and then while a kernel starts; nothing is lost but the start. */
const ATTEMPTS = 3;
const CRASHED = /^qemu ended with SIG(SEGV|ABRT|BUS|ILL)/;

/** A machine that runs, with the cluster whose only node it is. */
export interface Machine {
  readonly kubeconfig: string;
  readonly sshPort: number;
  readonly shell: Shell;
  /** The layer of the guest's image with Node.js. */
  readonly nodeLayer: Layer;
  /** Ends everything; nothing of the guest is kept but its last words. */
  stop(): Promise<void>;
}

/**
 * Boots it, with a control plane on loopback, and returns once pods can run there.
 * @param makeDisks more files to be disks of the guest; called once its kernel is there
 * @param say what takes long, in a few words
 * @throws Error saying what the guest was doing when it took too long
 */
export async function startMachine(
  places: Places,
  makeDisks: MakeDisks,
  say: (what: string) => void,
  signal: AbortSignal,
): Promise<Machine> {
  await makeBase(places, await debianMirror(), say);
  const disks = await makeDisks(places, say);
  await rm(places.run, { recursive: true, force: true });
  await mkdir(places.run, { recursive: true });
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
    for (let attempt = 1; ; attempt++) {
      say('booting');
      guest = startGuest(places, sshPort, disks);
      const failure = await booted(guest, shell, plane, places, say, signal).catch((error: Error) => error);
      if (failure === undefined) break;
      if (attempt === ATTEMPTS || !CRASHED.test(failure.message)) throw failure;
      say(failure.message.split(':')[0] ?? '');
    }
    const running = { pid: process.pid, sshPort, kubeconfig: plane.adminKubeconfig, nodeLayer };
    await writeFile(places.running, JSON.stringify(running));
    return { kubeconfig: plane.adminKubeconfig, sshPort, shell, nodeLayer, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The machine that another run keeps, if there is one. It is ended by that run alone. */
export async function findMachine(places: Places): Promise<Machine | undefined> {
  const text = await readFile(places.running, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const { pid, sshPort, kubeconfig, nodeLayer } = JSON.parse(text) as Running;
  const lives = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  if (!lives.includes('test/lab')) return undefined;
  return { kubeconfig, sshPort, shell: createShell(places, sshPort), nodeLayer, stop: async () => {} };
}

interface Running {
  readonly pid: number;
  readonly sshPort: number;
  readonly kubeconfig: string;
  readonly nodeLayer: Layer;
}

/** It ends with this process, however that ends. */
function startGuest(places: Places, sshPort: number, disks: Disks): Program {
  const command = ['--pdeathsig', 'KILL', 'nice', '-n', '10', 'env', `TMPDIR=${places.run}`, 'qemu-system-x86_64'];
  return startProgram(
    'qemu',
    '/usr/bin/setpriv',
    [...command, ...qemuArguments(places, sshPort, disks)],
    `${places.run}/qemu.log`,
  );
}

/** Waiting on would not help. */
class Hopeless extends Error {}

async function booted(
  guest: Program,
  shell: Shell,
  plane: ControlPlane,
  places: Places,
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
      guest.assertAlive();
      const why = held instanceof Hopeless ? held.message : `not within ${seconds} s`;
      if (held instanceof Hopeless || monotonicSeconds() > end) {
        throw new Error(`${what}: ${why}\n${await whyNotReady(shell, places.serialLog)}`);
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

/** Ready, by this boot's kubelet, and free of the taint that comes before. */
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
