import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** The resources of a daemon at one moment. */
export type Sample = Readonly<Record<Measure, number>>;

export const MEASURES = {
  rss: { unit: 'MiB', allowance: 16, about: 'resident memory' },
  heap: { unit: 'MiB', allowance: 4, about: 'heap and buffers after collecting garbage' },
  fds: { unit: '', allowance: 4, about: 'open files' },
  sockets: { unit: '', allowance: 4, about: 'of them sockets' },
  timers: { unit: '', allowance: 6, about: 'timers' },
  watches: { unit: '', allowance: 1, about: 'watched directories' },
  others: { unit: '', allowance: 6, about: 'other resources that keep Node.js running' },
} as const;
export type Measure = keyof typeof MEASURES;

interface Probed {
  readonly heap: number;
  readonly resources: Readonly<Record<string, number>>;
}

const MIB = 2 ** 20;

/** Reads the process from /proc, and its own figures. Undefined if it does not run. */
export function sampleOf(pid: number, directory: string): Sample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const links = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
    const { heap, resources } = JSON.parse(readFileSync(join(directory, `${pid}.json`), 'utf8')) as Probed;
    const { Timeout: timers = 0, FSEventWrap: watches = 0, Immediate: _, ...rest } = resources;
    return {
      rss: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024,
      heap: heap / MIB,
      fds: links.length,
      sockets: links.filter((link) => link.startsWith('socket:')).length,
      timers,
      watches,
      others: Object.values(rest).reduce((sum, count) => sum + count, 0),
    };
  } catch {
    return undefined;
  }
}

/** Files may be closed during the check. */
function linkOf(path: string): string[] {
  try {
    return [readlinkSync(path)];
  } catch {
    return [];
  }
}
