import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { endsWithUs } from '../../support/children.ts';

export type Supervised = ReturnType<typeof supervise>;

export interface SupervisedOptions {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly nodeArgs?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly port: number;
  readonly probePort: number;
}

/** Milliseconds between its end and its next start. */
const RESTART = 300;
/** Milliseconds between the end of a replaced pod and the start of the next, as for a kubelet. */
const CONTAINER_START = 1000;
/** Milliseconds until it must have ended: terminationGracePeriodSeconds. */
const GRACE = 30_000;

/** Starts a daemon that is restarted whenever it ends, as by a kubelet. */
export function supervise(options: SupervisedOptions) {
  const { name, args, nodeArgs = [], env = {}, directory, port, probePort } = options;
  let { program } = options;
  const crashes: string[] = [];
  let kills = 0;
  let stopping = false;
  let killed = false;
  let child: ChildProcess;
  let ended: Promise<void>;
  let restart: NodeJS.Timeout | undefined;

  const start = () => {
    const out = openSync(join(directory, `${name}.log`), 'a');
    killed = false;
    child = spawn(process.execPath, [...nodeArgs, program, ...args], {
      stdio: ['ignore', out, out],
      env: { ...process.env, ...env },
    });
    closeSync(out);
    endsWithUs(child);
    ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        resolve();
        if (stopping) return;
        if (!killed) crashes.push(`${name} ended by itself with ${code ?? signal}`);
        restart = setTimeout(start, RESTART);
      });
    });
  };
  start();
  const running = () => child.exitCode === null && child.signalCode === null;
  const stop = async () => {
    stopping = true;
    clearTimeout(restart);
    if (!running()) return;
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), GRACE);
    await ended;
    clearTimeout(timer);
    if (child.exitCode !== 0) crashes.push(`${name} did not end in order: ${child.exitCode ?? child.signalCode}`);
  };

  return {
    name,
    port,
    probePort,
    crashes,
    get pid() {
      return child.pid ?? 0;
    },
    get running() {
      return running();
    },
    get kills() {
      return kills;
    },
    /** Kills it; it is restarted. */
    kill() {
      if (!running() || killed) return;
      killed = true;
      kills++;
      child.kill('SIGKILL');
    },
    async ready(seconds: number): Promise<void> {
      const deadline = performance.now() + seconds * 1000;
      for (;;) {
        const answer = await fetch(`http://127.0.0.1:${probePort}/readyz`).catch(() => undefined);
        if (answer?.ok) return;
        if (performance.now() > deadline) throw new Error(`${name} is not ready after ${seconds} s`);
        await delay(50);
      }
    },
    /** Stops it cleanly, and starts the same from another file, as when the pod of a DaemonSet is replaced. */
    async replace(other: string) {
      await stop();
      await delay(CONTAINER_START);
      program = other;
      stopping = false;
      start();
    },
    stop,
  };
}
