import { CpuSet } from './cpu-set.ts';
import { type HostDescription, HostError } from './host.ts';

/** Sysfs data about one CPU. Lists are in the kernel's format: `0-1`, `0,4`, `0-7`. */
export interface SysfsCpu {
  readonly id: number;
  /** `topology/thread_siblings_list`, or core_cpus_list; includes the CPU itself. */
  readonly siblings: string;
  /** `topology/physical_package_id`; -1 if the firmware does not report it. */
  readonly socket?: number | undefined;
  /** `cache/index3/id`; absent without a last-level cache with that index. */
  readonly uncore?: number | undefined;
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
}

/**
 * Describes a host from sysfs data. It drops offline CPUs from all lists, so a core with one offline thread has one
 * thread fewer.
 * @throws HostError if siblings are not symmetric or an online CPU has no data; the message names the CPU
 * @throws ParseError if a list is not a CPU list
 */
export function describeSysfs({ online: text, cpus, nodes }: SysfsHost): HostDescription {
  const online = CpuSet.parse(text);
  const siblings = new Map(
    cpus.filter(({ id }) => online.has(id)).map((cpu) => [cpu.id, CpuSet.parse(cpu.siblings).intersect(online)]),
  );
  const missing = [...online].find((id) => !siblings.has(id));
  if (missing !== undefined) throw new HostError(`CPU ${missing} is online, but its siblings are unknown`);
  for (const [id, core] of siblings) assertSymmetric(id, core, siblings);
  const present = cpus.filter(({ id }) => online.has(id));
  const cells = nodes.map(({ id, cpus: list }) => ({ id, cpus: `${CpuSet.parse(list).intersect(online)}` }));
  const sockets = grouped(present, ({ socket }) => (socket === undefined || socket < 0 ? undefined : socket));
  const uncores = grouped(present, ({ uncore }) => uncore);
  return {
    cells: cells.length > 0 ? cells : [{ id: 0, cpus: `${online}` }],
    cores: [...new Set([...siblings.values()].map(String))],
    ...(sockets && { sockets }),
    ...(uncores && { uncores }),
  };
}

/** Checks that all siblings of a CPU have the same siblings, and that each CPU is among its own. */
function assertSymmetric(id: number, core: CpuSet, siblings: ReadonlyMap<number, CpuSet>): void {
  if (!core.has(id)) throw new HostError(`CPU ${id} is not among its own siblings ${core}`);
  for (const other of core) {
    const theirs = siblings.get(other);
    if (theirs?.equals(core)) continue;
    throw new HostError(
      `CPU ${id} has the siblings ${core}, but CPU ${other} has the siblings ${theirs ?? 'none'}: they must be the same`,
    );
  }
}

/** The CPUs by group, if every CPU has a group: a partial grouping is not used. */
function grouped(cpus: readonly SysfsCpu[], groupOf: (cpu: SysfsCpu) => number | undefined) {
  const groups = new Map<number, number[]>();
  for (const cpu of cpus) {
    const group = groupOf(cpu);
    if (group === undefined) return undefined;
    groups.set(group, [...(groups.get(group) ?? []), cpu.id]);
  }
  return [...groups].sort(([a], [b]) => a - b).map(([id, ids]) => ({ id, cpus: `${CpuSet.of(ids)}` }));
}
