import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CpuSet, unionOf } from '../model/cpu-set.ts';
import { entries, readId } from './sysfs.ts';

export interface NicLocation {
  /** `hardware`: a device, or built on devices. `virtual`: without a device (dummy, veth, tap). `absent`: none. */
  readonly kind: 'hardware' | 'virtual' | 'absent';
  /** NUMA nodes of the hardware; empty if unknown. */
  readonly cells: CpuSet;
  /** Names of the underlying hardware whose NUMA node is unknown. */
  readonly unknown: readonly string[];
}

const MAX_INTERFACES = 1024;

const ABSENT: NicLocation = { kind: 'absent', cells: CpuSet.EMPTY, unknown: [] };
const VIRTUAL: NicLocation = { kind: 'virtual', cells: CpuSet.EMPTY, unknown: [] };

const list = (directory: string) => ifAny(() => readdirSync(directory));
const read = (file: string) => ifAny(() => readFileSync(file, 'utf8').trim());
const real = (path: string) => ifAny(() => realpathSync(path));

/**
 * Finds the NUMA nodes of a network interface: down through `lower_*` links to devices, then up to the first device
 * with a `numa_node`. A virtual function without one has that of its physical function. -1 means unknown.
 * Source: Documentation/ABI/testing/sysfs-class-net, sysfs-bus-pci of the kernel. @param root usually `/sys`
 */
export function locateNic(root: string, name: string): NicLocation {
  return locateOnce(root, name, new Set());
}

/** Visits each interface once: a stack in which many interfaces share lower ones has more paths than interfaces. */
function locateOnce(root: string, name: string, visited: Set<string>): NicLocation {
  const directory = directoryOf(root, name);
  const entries = list(directory);
  if (entries === undefined) return ABSENT;
  visited.add(name);
  const lower = lowerNames(directory, entries).map((device) =>
    visited.has(device) || visited.size >= MAX_INTERFACES ? VIRTUAL : locateOnce(root, device, visited),
  );
  if (lower.length > 0) return together(lower);
  return entries.includes('device') ? locateDevice(join(directory, 'device'), root, name) : VIRTUAL;
}

/** Locates a PCI function by its address: `0000:3b:00.0`. */
export function locatePci(root: string, address: string): NicLocation {
  const directory = join(root, 'bus/pci/devices', address);
  return list(directory) === undefined ? ABSENT : locateDevice(directory, root, address);
}

/** Whether an interface carries traffic of a guest and not of the host: a veth, a tap, a VF's representor. */
export function isGuestSide(root: string, name: string): boolean {
  const directory = directoryOf(root, name);
  if (read(join(directory, 'tun_flags')) !== undefined) return true;
  if (/^(?:c\d+)?pf\d+(?:vf|sf)\d+$/.test(read(join(directory, 'phys_port_name')) ?? '')) return true;
  const [interfaceIndex, linkIndex] = [read(join(directory, 'ifindex')), read(join(directory, 'iflink'))];
  return interfaceIndex !== linkIndex && lowerNames(directory, list(directory) ?? []).length === 0;
}

/**
 * Where the traffic of an interface without hardware continues: lower interfaces, its bridge or bond, the other end of
 * a veth. That end may be in another network namespace: the interface here with its index then does not link back.
 */
export function neighborsOf(root: string, name: string, byIndex: () => ReadonlyMap<string, string>): string[] {
  const directory = directoryOf(root, name);
  const neighbors = lowerNames(directory, list(directory) ?? []);
  const [index, link] = [read(join(directory, 'ifindex')), read(join(directory, 'iflink'))];
  if (neighbors.length === 0 && index !== link && link !== undefined) {
    const peer = byIndex().get(link);
    if (peer !== undefined && read(join(directoryOf(root, peer), 'iflink')) === index) neighbors.push(peer);
  }
  const master = real(join(directory, 'master')) ?? '';
  const isSwitching = list(join(master, 'bridge')) ?? list(join(master, 'bonding'));
  if (master !== '' && isSwitching !== undefined) neighbors.push(basename(master));
  return neighbors;
}

/** The names of all interfaces, in any order. */
export function interfaceNames(root: string): string[] {
  return list(join(root, 'class/net')) ?? [];
}

export function interfacesByIndex(root: string): ReadonlyMap<string, string> {
  return new Map(interfaceNames(root).map((name) => [read(join(directoryOf(root, name), 'ifindex')) ?? '', name]));
}

/** Undefined if the kernel does not report it: reading `carrier` of an interface that is down is an error. */
export function hasCarrier(root: string, name: string): boolean | undefined {
  const directory = directoryOf(root, name);
  const carrier = read(join(directory, 'carrier'));
  if (carrier !== undefined) return carrier === '1';
  return read(join(directory, 'operstate')) === 'down' ? false : undefined;
}

/** A name from the switch that leads out of the directory counts as absent. */
function directoryOf(root: string, name: string): string {
  const isName = name !== '' && name !== '.' && name !== '..' && !name.includes('/') && !name.includes('\0');
  return join(root, 'class/net', isName ? name : ' ');
}

/** The lower interfaces of an interface. A bond also lists its slaves in a separate file. */
function lowerNames(directory: string, entries: readonly string[]): string[] {
  const slaves = entries.includes('bonding') ? (read(join(directory, 'bonding/slaves')) ?? '').split(/\s+/) : [];
  const lower = entries.filter((entry) => entry.startsWith('lower_')).map((entry) => entry.slice('lower_'.length));
  return [...new Set([...slaves, ...lower])].filter((name) => name !== '');
}

function locateDevice(device: string, root: string, name: string): NicLocation {
  const node = nodeAbove(device, root) ?? parseNode(read(join(device, 'physfn/numa_node')) ?? '');
  const isUnknown = node === undefined;
  return { kind: 'hardware', cells: CpuSet.of(isUnknown ? [] : [node]), unknown: isUnknown ? [name] : [] };
}

function nodeAbove(device: string, root: string): number | undefined {
  let [path, top] = [real(device), real(root)];
  while (path !== undefined && top !== undefined && path.length > top.length) {
    const text = read(join(path, 'numa_node'));
    if (text !== undefined) return parseNode(text);
    path = dirname(path);
  }
  return undefined;
}

function parseNode(text: string): number | undefined {
  return /^\d{1,4}$/.test(text) ? Number(text) : undefined;
}

function together(locations: readonly NicLocation[]): NicLocation {
  const hardware = locations.filter(({ kind }) => kind === 'hardware');
  if (hardware.length === 0) return VIRTUAL;
  const cells = unionOf(hardware.map((location) => location.cells));
  return { kind: 'hardware', cells, unknown: hardware.flatMap(({ unknown }) => unknown) };
}

/** Errors of this process or machine, which say nothing about a file: they must not look like a NIC's absence. */
const UNRELATED_ERRORS: ReadonlySet<string | undefined> = new Set(['EMFILE', 'ENFILE', 'ENOMEM', 'EACCES']);

/** Undefined if the kernel has no such file, or does not answer for this device. @throws an unrelated error */
function ifAny<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (UNRELATED_ERRORS.has((error as NodeJS.ErrnoException).code)) throw error;
    return undefined;
  }
}

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
    const location = locateNic(root, name);
    const isFunction = (await entries(join(directory, 'device'), /^physfn$/)).length > 0;
    if (location.kind !== 'hardware' || isFunction || isGuestSide(root, name)) continue;
    const device = targetName(join(directory, 'device'));
    nics.push({
      name,
      cells: location.cells.toArray(),
      pci: device !== undefined && /^[0-9a-f]{4,}:[0-9a-f]{2}:/.test(device) ? device : undefined,
      driver: targetName(join(directory, 'device/driver')),
      up: hasCarrier(root, name),
      speed: (await readId(join(directory, 'speed')).catch(() => undefined)) || undefined,
      virtualFunctions: (await readId(join(directory, 'device/sriov_numvfs'))) ?? 0,
    });
  }
  return nics;
}

function targetName(path: string): string | undefined {
  const target = real(path);
  return target && basename(target);
}
