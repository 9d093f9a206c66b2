import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { endsWithUs } from './children.ts';

/** A program of the control plane; its output goes to a file. */
export type Program = ReturnType<typeof startProgram>;

/** Seconds between SIGTERM and SIGKILL. */
const GRACE = 10;

export function startProgram(name: string, path: string, args: readonly string[], logFile: string) {
  const out = openSync(logFile, 'a');
  const child: ChildProcess = spawn(path, [...args], { stdio: ['ignore', out, out] });
  closeSync(out);
  endsWithUs(child);
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const how = () => child.exitCode ?? child.signalCode;
  const running = () => how() === null;
  return {
    name,
    pid: child.pid ?? 0,
    logFile,
    /** Its exit status or signal; undefined while it runs. */
    get ended(): string | undefined {
      return how()?.toString();
    },
    /** Throws with the end of the log if the program has ended. */
    assertAlive(): void {
      if (running()) return;
      const last = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
      throw new Error(`${name} ended with ${how()}:\n${last}`);
    },
    async stop(signal: NodeJS.Signals = 'SIGTERM') {
      if (!running()) return;
      child.kill(signal);
      const timer = setTimeout(() => child.kill('SIGKILL'), GRACE * 1000);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Starts a server on a free port of 127.0.0.1. @returns the port */
export async function listenOnLoopback(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listenOnLoopback(server);
  server.close();
  await once(server, 'close');
  return port;
}
