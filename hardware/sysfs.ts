import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet } from '../model/cpu-set.ts';
import { PlumblineError } from '../model/errors.ts';
import type { SysfsCache, SysfsCpu, SysfsHost } from '../model/host-sysfs.ts';

/**
 * Source: Documentation/admin-guide/cputopology.rst, ABI/stable/sysfs-devices-node of the kernel.
 * @throws SysfsError if the CPU directory is missing; ParseError if a CPU list in it is malformed
 */
export async function readSysfs(root: string): Promise<SysfsHost> {
  const cpuDirectory = join(root, 'devices/system/cpu');
  const nodeDirectory = join(root, 'devices/system/node');
  const online = await readOnline(cpuDirectory);
  const readNode = async (id: number) => {
    return { id, cpus: ((await readOptional(join(nodeDirectory, `node${id}/cpulist`))) ?? '').trim() };
  };
  return {
    online: online.toString(),
    cpus: await Promise.all([...online].map((cpu) => readCpu(cpuDirectory, cpu))),
    nodes: await Promise.all((await numaNodeIds(nodeDirectory)).map(readNode)),
    directories: (await entries(cpuDirectory, /^cpu\d+$/)).length,
  };
}

/** @throws SysfsError, ParseError */
async function readOnline(cpuDirectory: string): Promise<CpuSet> {
  const file = join(cpuDirectory, 'online');
  const text = await readOptional(file);
  if (text === undefined) throw new SysfsError(`${file} is missing; is sysfs mounted there?`);
  const online = CpuSet.parse(text);
  if (online.isEmpty) throw new SysfsError(`${file} lists no CPU`);
  return online;
}

/** CPUs that the kernel's scheduler does not balance (isolcpus); empty if the kernel reports none. */
export async function readIsolated(root: string): Promise<CpuSet> {
  return CpuSet.parse((await readOptional(join(root, 'devices/system/cpu/isolated'))) ?? '');
}

/** CPUs that are present, but not online; empty if the kernel does not list those that are present. */
export async function readOffline(root: string): Promise<CpuSet> {
  const directory = join(root, 'devices/system/cpu');
  const present = await readOptional(join(directory, 'present'));
  return present === undefined ? CpuSet.EMPTY : CpuSet.parse(present).minus(await readOnline(directory));
}

async function readCpu(cpuDirectory: string, id: number): Promise<SysfsCpu> {
  const directory = join(cpuDirectory, `cpu${id}`);
  const siblings =
    (await readOptional(join(directory, 'topology/thread_siblings_list'))) ??
    (await readOptional(join(directory, 'topology/core_cpus_list'))) ??
    '';
  const caches = await entries(join(directory, 'cache'), /^index/);
  return {
    id,
    // A CPU is its own sibling even if the list is empty, as on some virtual machines.
    siblings: siblings.trim() === '' ? String(id) : siblings,
    core: await readNumber(join(directory, 'topology/core_id')),
    socket: await readNumber(join(directory, 'topology/physical_package_id')),
    caches: await Promise.all(caches.sort().map((name) => readCpuCache(join(directory, 'cache', name)))),
  };
}

async function readCpuCache(directory: string): Promise<SysfsCache | undefined> {
  const level = await readNumber(join(directory, 'level'));
  const id = await readNumber(join(directory, 'id'));
  const [map, size, type] = await Promise.all(
    ['shared_cpu_map', 'size', 'type'].map((file) => readOptional(join(directory, file))),
  );
  const isComplete = /^[\da-f,\s]+$/i.test(map ?? '') && /^\d+K/.test(size ?? '') && type !== undefined;
  return isComplete && level !== undefined && id !== undefined ? { level, id, sharedBy: bitsOf(map ?? '') } : undefined;
}

function bitsOf(map: string): number {
  return [...map].map((digit) => Number.parseInt(digit, 16).toString(2).replaceAll(/[^1]/g, '')).join('').length;
}

class SysfsError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('sysfs', message, options);
  }
}

/** The text of a file, or undefined if it is missing or does not apply to this hardware. */
export async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw new SysfsError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** An id in a file. Negative numbers mean unknown in sysfs and result in undefined. */
export async function readId(file: string): Promise<number | undefined> {
  const text = (await readOptional(file))?.trim();
  return text === undefined || !/^\d+$/.test(text) ? undefined : Number(text);
}

/** A whole number at the start of a file, as Go's Sscanf reads it. Undefined if the file is missing or has none. */
export async function readNumber(file: string): Promise<number | undefined> {
  const digits = /^\s*([+-]?\d+)/.exec((await readOptional(file)) ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export async function entries(directory: string, pattern: RegExp): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => pattern.test(name));
  } catch (error) {
    if (isAbsent(error)) return [];
    throw new SysfsError(`${directory} cannot be listed: ${(error as Error).message}`, { cause: error });
  }
}

export async function numaNodeIds(directory: string): Promise<number[]> {
  const names = await entries(directory, /^node\d+$/);
  return names.map((name) => Number(name.slice('node'.length))).sort((a, b) => a - b);
}

/** Some sysfs files return ENODEV or EINVAL if they do not apply. */
function isAbsent(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return ['ENOENT', 'ENOTDIR', 'ENODEV', 'EINVAL'].includes(code);
}

export interface Cache {
  readonly level: number;
  readonly type: 'data' | 'instruction' | 'unified';
  /** In bytes. */
  readonly size: number | undefined;
  readonly cpus: CpuSet;
}

/**
 * The caches of the online CPUs, each once, by level, then by first CPU; empty on many virtual machines.
 * Source: Documentation/ABI/testing/sysfs-devices-system-cpu of the kernel. @throws ParseError
 */
export async function readCaches(root: string, online: CpuSet): Promise<Cache[]> {
  const caches = new Map<string, Cache>();
  for (const cpu of online) {
    const directory = join(root, `devices/system/cpu/cpu${cpu}/cache`);
    for (const index of await entries(directory, /^index\d+$/)) {
      const cache = await readCache(join(directory, index), online);
      if (cache) caches.set(`${cache.level} ${cache.type} ${cache.cpus}`, cache);
    }
  }
  return [...caches.values()].sort((a, b) => a.level - b.level || (a.cpus.first ?? 0) - (b.cpus.first ?? 0));
}

async function readCache(directory: string, online: CpuSet): Promise<Cache | undefined> {
  const level = await readId(join(directory, 'level'));
  const shared = await readOptional(join(directory, 'shared_cpu_list'));
  if (level === undefined || shared === undefined) return undefined;
  const type = (await readOptional(join(directory, 'type')))?.trim().toLowerCase();
  return {
    level,
    type: type === 'data' || type === 'instruction' ? type : 'unified',
    size: bytesOf((await readOptional(join(directory, 'size'))) ?? ''),
    cpus: CpuSet.parse(shared).intersect(online),
  };
}

const UNITS: Readonly<Record<string, number>> = { K: 1024, M: 1024 ** 2, G: 1024 ** 3 };

function bytesOf(text: string): number | undefined {
  const [, amount, unit = ''] = /^(\d+)([KMG]?)$/.exec(text.trim()) ?? [];
  return amount === undefined ? undefined : Number(amount) * (UNITS[unit] ?? 1);
}
