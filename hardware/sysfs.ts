import { join } from 'node:path';
import { CpuSet } from '../model/cpu-set.ts';
import type { SysfsCache, SysfsCpu, SysfsHost } from '../model/host-sysfs.ts';
import { entries, numaNodeIds, readNumber, readOptional, SysfsError } from './sysfs-files.ts';

/**
 * Reads what the kernel reports about CPUs and NUMA nodes.
 *
 * Source: Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-node of the kernel.
 * @throws SysfsError if the CPU directory is missing
 * @throws ParseError if a CPU list in it is malformed
 */
export async function readSysfs(root: string): Promise<SysfsHost> {
  const cpuDirectory = join(root, 'devices/system/cpu');
  const online = await readOnline(cpuDirectory);
  return {
    online: online.toString(),
    cpus: await Promise.all([...online].map((cpu) => readCpu(cpuDirectory, cpu))),
    nodes: await readNodes(join(root, 'devices/system/node')),
    directories: (await entries(cpuDirectory, /^cpu\d+$/)).length,
  };
}

/** The CPUs that are online. @throws SysfsError @throws ParseError */
async function readOnline(cpuDirectory: string): Promise<CpuSet> {
  const file = join(cpuDirectory, 'online');
  const text = await readOptional(file);
  if (text === undefined) throw new SysfsError(`${file} is missing; is sysfs mounted there (--sysfs-root)?`);
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
  return {
    id,
    // A CPU is its own sibling even if the list is empty, as on some virtual machines.
    siblings: siblings.trim() === '' ? String(id) : siblings,
    core: await readNumber(join(directory, 'topology/core_id')),
    socket: await readNumber(join(directory, 'topology/physical_package_id')),
    caches: await readCpuCaches(join(directory, 'cache')),
  };
}

async function readCpuCaches(directory: string): Promise<(SysfsCache | undefined)[]> {
  const names = (await entries(directory, /^index/)).sort();
  return Promise.all(names.map((name) => readCpuCache(join(directory, name))));
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

/** Number of bits in a mask such as `ff,00000003`. */
function bitsOf(map: string): number {
  const digits = [...map].map((digit) => Number.parseInt(digit, 16).toString(2).replaceAll(/[^1]/g, ''));
  return digits.join('').length;
}

async function readNodes(directory: string): Promise<{ id: number; cpus: string }[]> {
  const ids = await numaNodeIds(directory);
  return Promise.all(
    ids.map(async (id) => ({ id, cpus: (await readOptional(join(directory, `node${id}/cpulist`)))?.trim() ?? '' })),
  );
}
