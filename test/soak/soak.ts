import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startLoad } from '../faults/load.ts';
import type { Supervised } from '../faults/world/supervised.ts';
import { startWorld, type World } from '../faults/world/world.ts';

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

function sampleOf(pid: number, directory: string): Sample | undefined {
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

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Called each minute with the progress. */
  readonly progress: (text: string) => void;
}

const SAMPLE_SECONDS = 5;
/** Time passes twelve times as fast: watches, which last five minutes, are interrupted; certificates are renewed. */
const WATCH_SECONDS = 25;
const RENEWAL_SECONDS = 60;
/** Time for a daemon to collect its garbage and write its figures. */
const SETTLE_MILLISECONDS = 1500;

/**
 * VMs come and go continuously for this time, while events of hours happen within minutes.
 * @returns samples of each daemon with their minutes; other faults are violated invariants, crashes, a VM without a place
 */
export async function soak({ minutes, seed, progress }: SoakOptions) {
  const directory = `/tmp/plumbline-soak-${process.pid}`;
  await mkdir(directory, { recursive: true });
  const probed = {
    nodeArgs: ['--expose-gc', '--require', join(import.meta.dirname, 'probe.cjs')],
    env: { PLUMBLINE_SOAK_DIRECTORY: directory },
  };
  const world = await startWorld('sandbox', { process: probed });
  const load = startLoad({ world, seed, vms: Number.MAX_SAFE_INTEGER });
  const samples = new Map(world.daemons.all.map(({ name }) => [name, [] as [number, Sample][]]));
  const problems: string[] = [];
  const began = performance.now();
  const elapsed = () => (performance.now() - began) / 60_000;
  const wear = startWear(world);
  load.done.catch((error: Error) => problems.push(error.message));
  load.healthy(60);
  let said = 0;
  while (elapsed() < minutes && problems.length === 0) {
    await delay(SAMPLE_SECONDS * 1000 - SETTLE_MILLISECONDS);
    await take(world.daemons.all, directory, (name, sample) => samples.get(name)?.push([elapsed(), sample]));
    if (Math.floor(elapsed()) > said) progress(`${++said} min: ${load.placed} VMs ran`);
  }
  wear();
  load.stop();
  problems.push(...world.observer.violations.map(({ text }) => text));
  problems.push(...world.daemons.all.flatMap(({ crashes }) => crashes));
  await world.stop(problems.length > 0);
  await rm(directory, { recursive: true, force: true });
  return { vms: load.placed, samples, problems };
}

async function take(
  daemons: readonly Supervised[],
  directory: string,
  keep: (name: string, sample: Sample) => void,
): Promise<void> {
  for (const { pid } of daemons) process.kill(pid, 'SIGUSR2');
  await delay(SETTLE_MILLISECONDS);
  for (const { name, pid } of daemons) {
    const sample = sampleOf(pid, directory);
    if (sample) keep(name, sample);
  }
}

function startWear({ gate, daemons }: World): () => void {
  const timers = [
    setInterval(() => gate.cutWatches(), WATCH_SECONDS * 1000),
    setInterval(() => void daemons.rotateCertificate(), RENEWAL_SECONDS * 1000),
  ];
  return () => {
    for (const timer of timers) clearInterval(timer);
  };
}
