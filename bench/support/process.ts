import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { dist, root } from '../../test/support/bundles.ts';
import { endChild, endsWithUs } from '../../test/support/children.ts';

export { root };

/** Path of a bundle of the measured build, by its file name. */
export const bundle = (file: string): string => join(dist, file);

/** A measured program. */
export interface Running {
  readonly pid: number;
  /** The first accepted JSON line on standard output or standard error. */
  line(accepts: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
}

const LAST_LINES = 10;
const MAX_LINE_CHARACTERS = 300;

export function run(command: string, args: readonly string[], env: Record<string, string> = {}): Running {
  const child = spawn(command, [...args], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endsWithUs(child);
  const lines: Record<string, unknown>[] = [];
  const waiting = new Set<() => void>();
  /** The last lines, for the error of a process that ends. */
  const last: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (text) => {
      last.push(text.slice(0, MAX_LINE_CHARACTERS));
      if (last.length > LAST_LINES) last.shift();
      try {
        lines.push(JSON.parse(text) as Record<string, unknown>);
      } catch {
        return;
      }
      for (const look of waiting) look();
    });
  }
  return {
    pid: child.pid ?? 0,
    line: (accepts) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = lines.find(accepts);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        // Its output may arrive after its end.
        child.once('close', (code) =>
          reject(new Error([`${command} ${args[0]} ended with status ${code}`, ...last].join('\n  '))),
        );
        look();
      }),
    stop: async () => void (await endChild(child, 'SIGKILL')),
  };
}

/** A TypeScript program of bench/. */
export function runScript(script: string, args: readonly string[] = [], env: Record<string, string> = {}): Running {
  return run(process.execPath, ['--import', 'tsx', join(root, script), ...args], env);
}

/** Resident memory in bytes: in total, and the part that no other process shares. */
export function memoryOf(pid: number): { readonly rss: number; readonly private: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
  return { rss: kilobytes('Rss') * 1024, private: (kilobytes('Private_Clean') + kilobytes('Private_Dirty')) * 1024 };
}

/** Processor seconds of all threads of a process since its start, from the scheduler's account in nanoseconds. */
export function cpuSecondsOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((id) =>
    Number(readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8').split(' ')[0]),
  );
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e9;
}
