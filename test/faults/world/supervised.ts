import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { endChild, endsWithUs } from '../../support/children.ts';
import { until } from '../../support/until.ts';

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
/** Until it must have ended: terminationGracePeriodSeconds. */
const GRACE_SECONDS = 30;

/** Starts a daemon that is restarted whenever it ends, as by a kubelet. */
export function supervise(options: SupervisedOptions) {
  const { name, args, nodeArgs = [], env = {}, directory, port, probePort } = options;
  let { program } = options;
  const crashes: string[] = [];
  let kills = 0;
  let stopping = false;
  let killed = false;
  let child: ChildProcess;
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
    child.once('exit', (code, signal) => {
      if (stopping) return;
      if (!killed) crashes.push(`${name} ended by itself with ${code ?? signal}`);
      restart = setTimeout(start, RESTART);
    });
  };
  start();
  const running = () => child.exitCode === null && child.signalCode === null;
  const stop = async () => {
    stopping = true;
    clearTimeout(restart);
    if (!running()) return;
    const status = await endChild(child, 'SIGTERM', GRACE_SECONDS);
    if (status !== 0) crashes.push(`${name} did not end in order: ${status}`);
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
      await until(`${name} to be ready`, async () => (await fetch(`http://127.0.0.1:${probePort}/readyz`)).ok, seconds);
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
