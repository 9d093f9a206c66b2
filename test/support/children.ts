import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';

const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

export function endsWithUs(child: ChildProcess): void {
  children.add(child);
  child.once('exit', () => children.delete(child));
}

/**
 * Ends a process with a signal, and with SIGKILL if it has not ended after the grace.
 * @returns its exit status, or the signal that ended it
 */
export async function endChild(
  child: ChildProcess,
  signal: NodeJS.Signals = 'SIGTERM',
  graceSeconds = 10,
): Promise<number | NodeJS.Signals | null> {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit');
    child.kill(signal);
    const timer = setTimeout(() => child.kill('SIGKILL'), graceSeconds * 1000);
    await ended;
    clearTimeout(timer);
  }
  return child.exitCode ?? child.signalCode;
}

export function endGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  kill(-pid);
}

/** This environment variable identifies a process whose parent has ended. */
const MARK = 'TEST_RUN';
/** The next search finds processes that are started while their parent is killed. */
const SEARCHES = 5;

/** Kills all that this process started when it exits, also in endless loops, other groups or without a parent. */
export function endAllAtExit(): void {
  const mark = randomUUID();
  process.env[MARK] = mark;
  process.once('exit', () => {
    for (let search = 0; search < SEARCHES; search++) {
      const pids = startedHere(`${MARK}=${mark}`);
      if (pids.length === 0) return;
      for (const pid of pids) kill(pid);
    }
  });
}

function startedHere(mark: string): number[] {
  const pids = entries('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid);
  const below = new Set([process.pid]);
  const started = new Set<number>();
  // Pids are nearly always in the order of their start; a second pass finds the others.
  for (const pid of [...pids, ...pids]) {
    const [state, parent] = text(`/proc/${pid}/stat`)
      .replace(/^.*\) /s, '')
      .split(' ');
    if (state === undefined || state === 'Z' || started.has(pid)) continue;
    if (!below.has(Number(parent)) && !text(`/proc/${pid}/environ`).split('\0').includes(mark)) continue;
    below.add(pid);
    started.add(pid);
  }
  return [...started];
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

function entries(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/** Empty if it has ended meanwhile. */
function text(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
