import { CpuSet, unionOf } from './cpu-set.ts';
import { type HostDescription, HostError } from './host.ts';

/** Sysfs data about one CPU. Lists are in the kernel's format: `0-1`, `0,4`, `0-7`. */
export interface SysfsCpu {
  readonly id: number;
  /** `topology/thread_siblings_list`, or core_cpus_list; includes the CPU itself. */
  readonly siblings: string;
  /** `topology/core_id`. Absent without the file. */
  readonly core?: number | undefined;
  /** `topology/physical_package_id`; -1 if the firmware does not report it. Absent without the file. */
  readonly socket?: number | undefined;
  /** `cache/index*` in the order of the names; undefined for one that cAdvisor cannot read, for example without id. */
  readonly caches?: readonly (SysfsCache | undefined)[] | undefined;
}

export interface SysfsCache {
  readonly level: number;
  readonly id: number;
  /** Number of CPUs that share it. */
  readonly sharedBy: number;
}

/** Sysfs data about the CPUs of a host. */
export interface SysfsHost {
  /** `/sys/devices/system/cpu/online`. */
  readonly online: string;
  readonly cpus: readonly SysfsCpu[];
  /**
   * `/sys/devices/system/node/node<id>/cpulist`. Empty without NUMA support in the kernel: then one node is assumed.
   */
  readonly nodes: readonly { readonly id: number; readonly cpus: string }[];
  /** Number of `cpu<id>` directories, also of CPUs that are offline. */
  readonly directories: number;
}

/**
 * Describes a host as the kernel has it. It drops offline CPUs from all lists, so a core with one offline thread has one
 * thread fewer.
 * @throws HostError if a CPU is in no NUMA node; createHost checks the rest
 * @throws ParseError if a list is not a CPU list
 */
export function describeSysfs({ online: text, cpus, nodes }: Omit<SysfsHost, 'directories'>): HostDescription {
  const online = CpuSet.parse(text);
  const present = cpus.filter(({ id }) => online.has(id));
  const sets = nodes.map(({ id, cpus: list }) => ({ id, cpus: CpuSet.parse(list).intersect(online) }));
  const lost = online.minus(unionOf(sets.map((node) => node.cpus)));
  const cells = sets.filter((node) => !node.cpus.isEmpty).map(({ id, cpus: set }) => ({ id, cpus: `${set}` }));
  if (cells.length > 0 && !lost.isEmpty) throw new HostError(`CPUs ${lost.brief} belong to no NUMA node`);
  const sockets = groupedIfComplete(present, ({ socket }) => socket);
  const uncores = groupedIfComplete(present, ({ caches }) => lastLevelCache(caches));
  return {
    cells: cells.length > 0 ? cells : [{ id: 0, cpus: `${online}` }],
    cores: [...new Set(present.map(({ siblings }) => `${CpuSet.parse(siblings).intersect(online)}`))],
    // Firmware that reports no sockets is of a machine with one.
    sockets: sockets ?? [{ id: 0, cpus: `${online}` }],
    ...(uncores && { uncores }),
  };
}

/** The id of the cache of the highest level, or undefined if there is none above level 2. */
function lastLevelCache(caches: SysfsCpu['caches'] = []): number | undefined {
  const shared = caches.filter((cache) => cache !== undefined && cache.level > 2);
  return shared.sort((a, b) => (b?.level ?? 0) - (a?.level ?? 0))[0]?.id;
}

/**
 * The CPUs by group, ascending. If an id is negative or larger than `maxId`, the groups are numbered from 0.
 */
export function grouped<Cpu extends { readonly id: number }>(
  cpus: readonly Cpu[],
  groupOf: (cpu: Cpu) => number,
  maxId = Number.POSITIVE_INFINITY,
) {
  const groups = new Map<number, number[]>();
  for (const cpu of cpus) {
    const group = groupOf(cpu);
    groups.set(group, [...(groups.get(group) ?? []), cpu.id]);
  }
  const sorted = [...groups].sort(([a], [b]) => a - b);
  const isValid = sorted.every(([id]) => id >= 0 && id <= maxId);
  return sorted.map(([id, ids], rank) => ({ id: isValid ? id : rank, cpus: `${CpuSet.of(ids)}` }));
}

/** The CPUs by group, if the kernel names the group of every CPU: a partial grouping is not used. */
function groupedIfComplete(cpus: readonly SysfsCpu[], groupOf: (cpu: SysfsCpu) => number | undefined) {
  const groups = cpus.map(groupOf);
  if (groups.some((group) => group === undefined || group < 0)) return undefined;
  return grouped(cpus, (cpu) => groupOf(cpu) ?? 0);
}
