import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CpuSet } from '../../model/cpu-set.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { HostDescription } from '../../model/host.ts';

/** A sysfs tree that lacks what a host cannot be described without; the message names the file. */
export class SysfsError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('sysfs', message, options);
  }
}

interface CpuGroup {
  readonly id: number;
  readonly cpus: string;
}

/**
 * Describes the host below `root` (usually `/sys`) by its online CPUs. A system without NUMA directories is one cell 0;
 * one without last-level cache ids has no `uncores`.
 *
 * Source: Documentation/admin-guide/cputopology.rst, Documentation/ABI/stable/sysfs-devices-node of the kernel.
 * @throws SysfsError if the CPU directory is missing
 * @throws ParseError if a CPU list in it is malformed
 */
export async function readHost(root: string): Promise<HostDescription> {
  const cpuDirectory = join(root, 'devices/system/cpu');
  const online = await readOnline(cpuDirectory);
  const topologies = await Promise.all([...online].map((cpu) => readCpu(cpuDirectory, cpu, online)));
  const cells = await readCells(join(root, 'devices/system/node'), online);
  const uncores = grouped(topologies, (topology) => topology.uncore);
  return {
    cells,
    cores: [...new Set(topologies.map((topology) => topology.siblings.toString()))],
    sockets: grouped(topologies, (topology) => topology.socket) ?? [{ id: 0, cpus: online.toString() }],
    ...(uncores === undefined ? {} : { uncores }),
  };
}

/** The CPUs that run now. @throws SysfsError @throws ParseError */
export async function readOnline(cpuDirectory: string): Promise<CpuSet> {
  const file = join(cpuDirectory, 'online');
  const text = await readOptional(file);
  if (text === undefined) throw new SysfsError(`${file} is missing; is sysfs mounted there (--sysfs-root)?`);
  const online = CpuSet.parse(text);
  if (online.isEmpty) throw new SysfsError(`${file} lists no CPU`);
  return online;
}

interface CpuTopology {
  readonly id: number;
  readonly siblings: CpuSet;
  readonly socket: number | undefined;
  readonly uncore: number | undefined;
}

async function readCpu(cpuDirectory: string, id: number, online: CpuSet): Promise<CpuTopology> {
  const directory = join(cpuDirectory, `cpu${id}`);
  const siblings =
    (await readOptional(join(directory, 'topology/thread_siblings_list'))) ??
    (await readOptional(join(directory, 'topology/core_cpus_list'))) ??
    String(id);
  return {
    id,
    // A CPU is its own sibling even where the list is empty, as on some virtual machines.
    siblings: CpuSet.parse(siblings)
      .intersect(online)
      .union(CpuSet.of([id])),
    socket: await readId(join(directory, 'topology/physical_package_id')),
    uncore: await readLastLevelCache(join(directory, 'cache')),
  };
}

/** The id of the cache of the highest level among `index*`, or undefined if the system does not number its caches. */
async function readLastLevelCache(directory: string): Promise<number | undefined> {
  let last: { level: number; id: number | undefined } | undefined;
  for (const index of await entries(directory, /^index\d+$/)) {
    const level = await readId(join(directory, index, 'level'));
    if (level === undefined || level < (last?.level ?? 3)) continue;
    last = { level, id: await readId(join(directory, index, 'id')) };
  }
  return last?.id;
}

async function readCells(directory: string, online: CpuSet): Promise<CpuGroup[]> {
  const cells: CpuGroup[] = [];
  let placed = CpuSet.EMPTY;
  for (const name of await entries(directory, /^node\d+$/)) {
    const cpus = CpuSet.parse((await readOptional(join(directory, name, 'cpulist'))) ?? '').intersect(online);
    // Nodes of memory alone hold no CPU and can hold no VM; they count for nothing here.
    if (!cpus.isEmpty) cells.push({ id: Number(name.slice('node'.length)), cpus: cpus.toString() });
    placed = placed.union(cpus);
  }
  if (cells.length === 0) return [{ id: 0, cpus: online.toString() }];
  const lost = online.minus(placed);
  if (!lost.isEmpty) throw new SysfsError(`${directory}: CPUs ${lost} belong to no NUMA node`);
  return cells.sort((a, b) => a.id - b.id);
}

/** CPUs by the id they have in common, or undefined if any of them has none. */
function grouped(
  topologies: readonly CpuTopology[],
  idOf: (topology: CpuTopology) => number | undefined,
): CpuGroup[] | undefined {
  const groups = new Map<number, number[]>();
  for (const topology of topologies) {
    const id = idOf(topology);
    if (id === undefined) return undefined;
    const cpus = groups.get(id) ?? [];
    cpus.push(topology.id);
    groups.set(id, cpus);
  }
  return [...groups].map(([id, cpus]) => ({ id, cpus: CpuSet.of(cpus).toString() })).sort((a, b) => a.id - b.id);
}

/** A number that names something; negative ones (sysfs says -1 for unknown) name nothing. */
async function readId(file: string): Promise<number | undefined> {
  const text = (await readOptional(file))?.trim();
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  return Number(text);
}

async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw new SysfsError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

async function entries(directory: string, pattern: RegExp): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => pattern.test(name));
  } catch (error) {
    if (isAbsent(error)) return [];
    throw new SysfsError(`${directory} cannot be listed: ${(error as Error).message}`, { cause: error });
  }
}

/** ENOENT and ENOTDIR; also ENODEV and EINVAL, with which some sysfs files answer a read when they mean nothing. */
function isAbsent(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return ['ENOENT', 'ENOTDIR', 'ENODEV', 'EINVAL'].includes(code);
}
