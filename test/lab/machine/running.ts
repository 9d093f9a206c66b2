import { readFile, writeFile } from 'node:fs/promises';
import type { LayoutName } from './layouts.ts';
import type { Layer } from './oci-archive.ts';
import type { Places } from './places.ts';

/** Running machines, published for other runs. */
export interface Running {
  readonly layout: LayoutName;
  readonly guests: readonly { readonly qemu: number; readonly sshPort: number }[];
  readonly kubeconfig: string;
  /** The layer of the guests' image with Node.js. */
  readonly nodeLayer: Layer;
}

/** The run that owns the machines; also the machines themselves once that run keeps them for others. */
type Entry = { readonly pid: number } & (Running | { readonly guests?: undefined });

/** Records that this process starts or uses a machine, or which machine it keeps for others. */
export async function writeRunning(places: Places, kept?: Running): Promise<void> {
  await writeFile(places.running, JSON.stringify({ pid: process.pid, ...kept }));
}

/**
 * The machine that another run keeps; undefined if no run has one.
 * @throws Error if another run starts or uses one itself: two runs would remove each other's files, pods and finally
 * the machine
 */
export async function readRunning(places: Places): Promise<Running | undefined> {
  const text = await readFile(places.running, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  const entry = JSON.parse(text) as Entry;
  const { pid } = entry;
  if (!(await commandLineOf(pid)).includes('test/lab')) return undefined;
  if (entry.guests === undefined) {
    throw new Error(
      `another run (process ${pid}) has the lab's machine: wait for its end, or set another XDG_CACHE_HOME for a second lab`,
    );
  }
  return entry;
}

/** Empty if there is no such process. */
export async function commandLineOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
}
