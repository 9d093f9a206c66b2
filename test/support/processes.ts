import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { endChild, endsWithUs } from './children.ts';

/** A program of the control plane; its output goes to a file. */
export type Program = ReturnType<typeof startProgram>;

export function startProgram(name: string, path: string, args: readonly string[], logFile: string) {
  const out = openSync(logFile, 'a');
  const child: ChildProcess = spawn(path, [...args], { stdio: ['ignore', out, out] });
  closeSync(out);
  endsWithUs(child);
  // One that cannot be started has no pid, and a log that says nothing.
  child.on('error', () => undefined);
  const how = () => child.exitCode ?? child.signalCode;
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
      if (how() === null) return;
      const last = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
      throw new Error(`${name} ended with ${how()}:\n${last}`);
    },
    /** With SIGKILL ten seconds after SIGTERM. */
    stop: async (signal?: NodeJS.Signals) => void (await endChild(child, signal)),
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
