import { realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { resultOrNone } from '../model/json.ts';
import { hasCarrier, isGuestSide, placeOfNic } from './nic-cells.ts';
import { entries, readId } from './sysfs-files.ts';

/** A network interface that is hardware or is built on hardware. */
export interface Nic {
  readonly name: string;
  /** NUMA nodes; empty if unknown to the kernel. */
  readonly cells: readonly number[];
  /** Address of its PCI function: `0000:3b:00.0`. */
  readonly pci: string | undefined;
  readonly driver: string | undefined;
  /** Undefined if the kernel does not report it. */
  readonly up: boolean | undefined;
  /** Megabits per second; undefined without a link. */
  readonly speed: number | undefined;
  readonly virtualFunctions: number;
}

/** The host's own interfaces, by name. Virtual functions and guests' ports are left out. */
export async function readNics(root: string): Promise<Nic[]> {
  const names = await entries(join(root, 'class/net'), /./);
  const nics: Nic[] = [];
  for (const name of names.sort()) {
    const directory = join(root, 'class/net', name);
    const place = placeOfNic(root, name);
    const isFunction = (await entries(join(directory, 'device'), /^physfn$/)).length > 0;
    if (place.kind !== 'hardware' || isFunction || isGuestSide(root, name)) continue;
    const device = real(join(directory, 'device'));
    nics.push({
      name,
      cells: place.cells.toArray(),
      pci: device !== undefined && /^[0-9a-f]{4,}:[0-9a-f]{2}:/.test(device) ? device : undefined,
      driver: real(join(directory, 'device/driver')),
      up: hasCarrier(root, name),
      speed: (await readId(join(directory, 'speed')).catch(() => undefined)) || undefined,
      virtualFunctions: (await readId(join(directory, 'device/sriov_numvfs'))) ?? 0,
    });
  }
  return nics;
}

/** The name of a link's target. */
function real(path: string): string | undefined {
  return resultOrNone(() => basename(realpathSync(path)));
}
