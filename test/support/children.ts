import type { ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

const children = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** Ends a child with this process at the latest, so that a run that fails or is broken off leaves nothing behind. */
export function endsWithUs(child: ChildProcess): void {
  children.add(child);
  child.once('exit', () => children.delete(child));
}

/** Kills a child that leads a process group, and what is in its group. Nothing if it has ended. */
export function endGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return;
  kill(-pid);
}

/** By this variable of the environment a process is known whose parent has ended. */
const MARK = 'TEST_RUN';
/** What is started while its parent is killed is found by the next search. */
const SEARCHES = 5;

/**
 * Kills all that this process has started when it exits, and what that has started: also what spins, leads a group of its own
 * or has lost its parent.
 */
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

/** Everything below this process, and everything with the mark. */
function startedHere(mark: string): number[] {
  const pids = entries('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && pid !== process.pid);
  const below = new Set([process.pid]);
  const started = new Set<number>();
  // Ascending pids are nearly always in the order of birth; a second turn finds the others.
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

/** Empty for what has ended meanwhile. */
function text(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
