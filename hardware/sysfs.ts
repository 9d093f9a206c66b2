import { join } from 'node:path';
import { CpuSet } from '../model/cpu-set.ts';
import type { HostDescription } from '../model/host.ts';
import { describeSysfs, type SysfsCpu } from '../model/host-siblings.ts';
import { entries, numaNodeIds, readId, readOptional, SysfsError } from './sysfs-files.ts';

/**
 * Describes the host below `root` (usually `/sys`) by its online CPUs. A system without NUMA directories has a single
 * cell 0; one without ids of last-level caches has no `uncores`.
 *
 * Source: Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-node of the kernel.
 * @throws SysfsError if the CPU directory is missing
 * @throws ParseError if a CPU list in it is malformed
 * @throws HostError if it contradicts itself
 */
export async function readHost(root: string): Promise<HostDescription> {
  const cpuDirectory = join(root, 'devices/system/cpu');
  const online = await readOnline(cpuDirectory);
  const description = describeSysfs({
    online: online.toString(),
    cpus: await Promise.all([...online].map((cpu) => readCpu(cpuDirectory, cpu))),
    nodes: await readNodes(join(root, 'devices/system/node'), online),
  });
  // Firmware that reports no sockets is of a machine with one.
  return { ...description, sockets: description.sockets ?? [{ id: 0, cpus: online.toString() }] };
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
    socket: await readId(join(directory, 'topology/physical_package_id')),
    uncore: await readLastLevelCache(join(directory, 'cache')),
  };
}

/** The id of the cache of the highest level among `index*`, or undefined if the caches have no ids. */
async function readLastLevelCache(directory: string): Promise<number | undefined> {
  let last: { level: number; id: number | undefined } | undefined;
  for (const index of await entries(directory, /^index\d+$/)) {
    const level = await readId(join(directory, index, 'level'));
    if (level === undefined || level < (last?.level ?? 3)) continue;
    last = { level, id: await readId(join(directory, index, 'id')) };
  }
  return last?.id;
}

async function readNodes(directory: string, online: CpuSet): Promise<{ id: number; cpus: string }[]> {
  const nodes: { id: number; cpus: string }[] = [];
  let placed = CpuSet.EMPTY;
  for (const id of await numaNodeIds(directory)) {
    const cpus = CpuSet.parse((await readOptional(join(directory, `node${id}/cpulist`))) ?? '').intersect(online);
    // Nodes without CPUs cannot run a VM, so they are left out.
    if (!cpus.isEmpty) nodes.push({ id, cpus: cpus.toString() });
    placed = placed.union(cpus);
  }
  const lost = online.minus(placed);
  if (nodes.length > 0 && !lost.isEmpty) throw new SysfsError(`${directory}: CPUs ${lost} belong to no NUMA node`);
  return nodes;
}
