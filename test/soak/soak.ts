import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startLoad } from '../faults/load.ts';
import type { Supervised } from '../faults/world/supervised.ts';
import { startWorld, type World } from '../faults/world/world.ts';
import { type Sample, sampleOf } from './sample.ts';

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

/** Events that wear daemons out over hours. Returns a function that stops them. */
function startWear({ gate, daemons }: World): () => void {
  const timers = [
    setInterval(() => gate.cutWatches(), WATCH_SECONDS * 1000),
    setInterval(() => void daemons.rotateCertificate(), RENEWAL_SECONDS * 1000),
  ];
  return () => {
    for (const timer of timers) clearInterval(timer);
  };
}
