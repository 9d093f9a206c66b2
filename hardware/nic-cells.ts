import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CpuSet, unionOf } from '../model/cpu-set.ts';

/** What sysfs says about where a network interface is. */
export interface NicPlace {
  /**
   * `hardware`: a device, or made of devices. `virtual`: of none (dummy, veth, tap). `absent`: there is no such
   * interface.
   */
  readonly kind: 'hardware' | 'virtual' | 'absent';
  /** NUMA nodes of the hardware; empty where they are unknown. */
  readonly cells: CpuSet;
  /** Hardware below it whose NUMA node is not known, by name. */
  readonly unknown: readonly string[];
}

/** Interfaces below one that are looked at. */
const MOST = 1024;

const ABSENT: NicPlace = { kind: 'absent', cells: CpuSet.EMPTY, unknown: [] };
const VIRTUAL: NicPlace = { kind: 'virtual', cells: CpuSet.EMPTY, unknown: [] };

/**
 * Finds the NUMA nodes of a network interface: through bonds, VLANs, bridges and whatever else the kernel lists as
 * `lower_*`, down to devices, and from a device up to the first that has a `numa_node` (a virtio NIC's own device has
 * none, its PCI function one level up does). A virtual function asks its physical one where it does not know itself.
 * -1 means unknown and is no node.
 *
 * Source: Documentation/ABI/testing/sysfs-class-net, sysfs-bus-pci of the kernel.
 * @param root where sysfs is, usually `/sys`
 */
export function placeOfNic(root: string, name: string): NicPlace {
  return placeOnce(root, name, new Set());
}

/** Each interface is looked at once: of a stack in which many lead to the same ones there are more ways than interfaces. */
function placeOnce(root: string, name: string, seen: Set<string>): NicPlace {
  const directory = directoryOf(root, name);
  const entries = list(directory);
  if (entries === undefined) return ABSENT;
  seen.add(name);
  const lower = lowerNames(directory, entries);
  if (lower.length > 0) {
    return together(lower.map((one) => (seen.has(one) || seen.size >= MOST ? VIRTUAL : placeOnce(root, one, seen))));
  }
  return entries.includes('device') ? placeOfDevice(join(directory, 'device'), root, name) : VIRTUAL;
}

/** The same of a PCI function by its address, `0000:3b:00.0`. */
export function placeOfPci(root: string, address: string): NicPlace {
  const directory = join(root, 'bus/pci/devices', address);
  return list(directory) === undefined ? ABSENT : placeOfDevice(directory, root, address);
}

/** Whether an interface carries a guest's traffic rather than the host's: a veth, a tap, a VF's representor. */
export function isGuestSide(root: string, name: string): boolean {
  const directory = directoryOf(root, name);
  if (read(join(directory, 'tun_flags')) !== undefined) return true;
  if (/^(?:c\d+)?pf\d+(?:vf|sf)\d+$/.test(read(join(directory, 'phys_port_name')) ?? '')) return true;
  const [own, peer] = [read(join(directory, 'ifindex')), read(join(directory, 'iflink'))];
  return own !== peer && lowerNames(directory, list(directory) ?? []).length === 0;
}

/**
 * Whether an interface has a carrier; undefined where the kernel does not tell. One that is switched off has none, and
 * the kernel answers a read of its `carrier` with an error.
 */
export function hasCarrier(root: string, name: string): boolean | undefined {
  const directory = directoryOf(root, name);
  const carrier = read(join(directory, 'carrier'));
  if (carrier !== undefined) return carrier === '1';
  return read(join(directory, 'operstate')) === 'down' ? false : undefined;
}

/** The switch names interfaces, too: a name that leads elsewhere is one that is not there. */
function directoryOf(root: string, name: string): string {
  const isName = name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('\0');
  return join(root, 'class/net', isName ? name : ' ');
}

/** What an interface is made of. A bond lists its slaves in a file of its own, too. */
function lowerNames(directory: string, entries: readonly string[]): string[] {
  const slaves = entries.includes('bonding') ? (read(join(directory, 'bonding/slaves')) ?? '').split(/\s+/) : [];
  const lower = entries.filter((entry) => entry.startsWith('lower_')).map((entry) => entry.slice('lower_'.length));
  return [...new Set([...slaves, ...lower])].filter((name) => name !== '');
}

function placeOfDevice(device: string, root: string, name: string): NicPlace {
  const node = nodeAbove(device, root) ?? nodeOf(join(device, 'physfn'));
  if (node === undefined) return { kind: 'hardware', cells: CpuSet.EMPTY, unknown: [name] };
  return { kind: 'hardware', cells: CpuSet.of([node]), unknown: [] };
}

/** The NUMA node of the nearest device above that says one. */
function nodeAbove(device: string, root: string): number | undefined {
  let [path, top] = [real(device), real(root)];
  while (path !== undefined && top !== undefined && path.length > top.length) {
    const text = read(join(path, 'numa_node'));
    if (text !== undefined) return parseNode(text);
    path = dirname(path);
  }
  return undefined;
}

const nodeOf = (device: string) => parseNode(read(join(device, 'numa_node')) ?? '');

function parseNode(text: string): number | undefined {
  return /^\d{1,4}$/.test(text) ? Number(text) : undefined;
}

function together(places: readonly NicPlace[]): NicPlace {
  const hardware = places.filter(({ kind }) => kind === 'hardware');
  if (hardware.length === 0) return VIRTUAL;
  return {
    kind: 'hardware',
    cells: unionOf(hardware.map(({ cells }) => cells)),
    unknown: hardware.flatMap(({ unknown }) => unknown),
  };
}

function list(directory: string): string[] | undefined {
  return quietly(() => readdirSync(directory));
}

/** A file's text without the blank at its end; undefined where it is missing or the kernel has no answer. */
function read(file: string): string | undefined {
  return quietly(() => readFileSync(file, 'utf8').trim());
}

function real(path: string): string | undefined {
  return quietly(() => realpathSync(path));
}

function quietly<Value>(look: () => Value): Value | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
