import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { createAgentMetrics } from '../../node-agent/telemetry/metrics.ts';
import type { Logger } from '../../runtime/log.ts';
import { Registry } from '../../runtime/metrics.ts';

/** A directory that is gone after the test that made it. Call in a hook or a test. */
export function tempDirectories() {
  const made: string[] = [];
  after(() => {
    for (const path of made) rmSync(path, { recursive: true, force: true });
  });
  return () => {
    const path = mkdtempSync(join(tmpdir(), 'plumbline-'));
    made.push(path);
    return path;
  };
}

/** Writes files below a root, directories included: `{'devices/system/cpu/online': '0-3'}`. */
export function writeTree(root: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

/** Replaces a file as the kubelet does: written beside it, then renamed. */
export function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.tmp`, text);
  renameSync(`${path}.tmp`, path);
}

/** A logger whose lines a test can look at. */
export function recordingLogger(): { log: Logger; lines: Record<string, unknown>[]; said: (msg: string) => boolean } {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'debug', base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines, said: (msg) => lines.some((line) => line.msg === msg) };
}

export const testMetrics = () => createAgentMetrics(new Registry());

/** Waits until the check holds. */
export async function eventually(check: () => boolean | Promise<boolean>, what: string, seconds = 5): Promise<void> {
  const end = performance.now() + seconds * 1000;
  while (!(await check())) {
    assert.ok(performance.now() < end, `not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export interface StandIn {
  readonly pid: number;
  readonly process: ChildProcess;
  /** Starts one more thread. */
  more(): Promise<void>;
  stop(): Promise<void>;
}

const STAND_IN = fileURLToPath(new URL('fixtures/ovs-stand-in.cjs', import.meta.url));

/** Starts a real process with the name of an OVS daemon and that many threads of its own beside Node's. */
export async function startStandIn(name: string, threads: number, pidfile: string): Promise<StandIn> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => key !== 'NODE_OPTIONS'));
  const child = spawn(process.execPath, [STAND_IN, name, String(threads), pidfile], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env,
  });
  await once(child.stdout!, 'data');
  return {
    pid: child.pid!,
    process: child,
    async more() {
      const answered = once(child.stdout!, 'data');
      child.stdin!.write('more\n');
      await answered;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

/** Cpus_allowed_list of every thread of a process, as the kernel shows it. */
export function allowedLists(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((tid) => {
    const status = readFileSync(`/proc/${pid}/task/${tid}/status`, 'utf8');
    return /Cpus_allowed_list:\s*(\S+)/.exec(status)?.[1] ?? '';
  });
}
