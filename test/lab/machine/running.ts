import { readFile, writeFile } from 'node:fs/promises';
import type { LayoutName } from './layouts.ts';
import type { Layer } from './oci-archive.ts';
import type { Places } from './places.ts';

/** A machine that runs, for other runs to find. */
export interface Running {
  readonly layout: LayoutName;
  readonly qemu: number;
  readonly sshPort: number;
  readonly kubeconfig: string;
  readonly nodeLayer: Layer;
}

/** The run whose machine it is; once that run is done with it and keeps it for others, the machine as well. */
type Entry = { readonly pid: number } & (Running | { readonly sshPort?: undefined });

/** Says that this process starts or uses a machine, or what machine it keeps for others. */
export async function writeRunning(places: Places, kept?: Running): Promise<void> {
  await writeFile(places.running, JSON.stringify({ pid: process.pid, ...kept }));
}

/**
 * The machine that another run keeps; undefined where no run has one.
 * @throws Error if another run starts or uses one itself: two would take away each other's files, pods and, at the end of
 *   the one, the machine
 */
export async function readRunning(places: Places): Promise<Running | undefined> {
  const text = await readFile(places.running, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const entry = JSON.parse(text) as Entry;
  const { pid } = entry;
  if (!(await commandLineOf(pid)).includes('test/lab')) return undefined;
  if (entry.sshPort === undefined) {
    throw new Error(
      `another run (process ${pid}) has the lab's machine: wait for its end, or set another XDG_CACHE_HOME for a second lab`,
    );
  }
  return entry;
}

/** Empty where there is no such process. */
export async function commandLineOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
}
