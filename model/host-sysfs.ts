import { cpuListText, cpusText } from './amounts.ts';
import { CpuSet, unionOf } from './cpu-set.ts';
import { type Host, type HostDescription, HostError, MAX_CELL_ID, MAX_CPU_ID } from './host.ts';
import { groupBy } from './lists.ts';

/** Lists are in the kernel's format: `0-1`, `0,4`, `0-7`. */
export interface SysfsCpu {
  readonly id: number;
  /** `topology/thread_siblings_list`, or core_cpus_list; includes the CPU itself. */
  readonly siblings: string;
  readonly core?: number | undefined;
  /** `topology/physical_package_id`; -1 if the firmware does not report it. Absent without the file. */
  readonly socket?: number | undefined;
  /** `cache/index*` in the order of the names; undefined for one that cAdvisor cannot read, for example without id. */
  readonly caches?: readonly (SysfsCache | undefined)[] | undefined;
}

export interface SysfsCache {
  readonly level: number;
  readonly id: number;
  readonly sharedBy: number;
}

export interface SysfsHost {
  readonly online: string;
  readonly cpus: readonly SysfsCpu[];
  /** Empty without NUMA support in the kernel: then one node is assumed. */
  readonly nodes: readonly { readonly id: number; readonly cpus: string }[];
  /** Number of `cpu<id>` directories, also of CPUs that are offline. */
  readonly directories: number;
}

/**
 * As the kernel has it, without offline CPUs: a core with one offline thread has one thread fewer.
 * @throws HostError if a CPU is in no NUMA node; createHost checks the rest. ParseError
 */
export function describeSysfs({ online: text, cpus, nodes }: Omit<SysfsHost, 'directories'>): HostDescription {
  const online = CpuSet.parse(text);
  const present = cpus.filter(({ id }) => online.has(id));
  const sets = nodes.map(({ id, cpus: list }) => ({ id, cpus: CpuSet.parse(list).intersect(online) }));
  const cpusWithoutNode = online.minus(unionOf(sets.map((node) => node.cpus)));
  const cells = sets.filter((node) => !node.cpus.isEmpty).map(({ id, cpus: set }) => ({ id, cpus: `${set}` }));
  if (cells.length > 0 && !cpusWithoutNode.isEmpty) {
    const verb = cpusWithoutNode.size === 1 ? 'belongs' : 'belong';
    throw new HostError(`${cpuListText(cpusWithoutNode.brief)} ${verb} to no NUMA node`);
  }
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

/** The CPUs by group, ascending. If an id is negative or larger than `maxId`, the groups are numbered from 0. */
export function groupCpus<Cpu extends { readonly id: number }>(
  cpus: readonly Cpu[],
  groupOf: (cpu: Cpu) => number,
  maxId = Number.POSITIVE_INFINITY,
) {
  const sorted = [...groupBy(cpus, groupOf)].sort(([a], [b]) => a - b);
  const isValid = sorted.every(([id]) => id >= 0 && id <= maxId);
  return sorted.map(([id, group], rank) => ({ id: isValid ? id : rank, cpus: `${setOf(group)}` }));
}

function setOf(cpus: readonly { readonly id: number }[]): CpuSet {
  return CpuSet.of(cpus.map(({ id }) => id));
}

/** The CPUs by group, if the kernel names the group of every CPU: a partial grouping is not used. */
function groupedIfComplete(cpus: readonly SysfsCpu[], groupOf: (cpu: SysfsCpu) => number | undefined) {
  const groups = cpus.map(groupOf);
  if (groups.some((group) => group === undefined || group < 0)) return undefined;
  return groupCpus(cpus, (cpu) => groupOf(cpu) ?? 0);
}

/** A core of the kubelet: the CPUs of a NUMA node with the same `core_id` and `physical_package_id`. */
interface KubeletCore {
  readonly socket: number;
  /** The CPUs in the order of their directories' names: cAdvisor asks the first one for the caches of the core. */
  readonly cpus: readonly SysfsCpu[];
  uncore?: number | undefined;
}

type KubeletCpu = SysfsCpu & { readonly core: number; readonly socket: number };

const MAX_GROUP_ID = 65_535;

/**
 * Describes a host as cAdvisor describes it to the kubelet. CPUs without `core_id` or `physical_package_id` do not
 * exist for it, and without NUMA directories each package is a NUMA node. @throws HostError if no CPU is left
 * Source: cAdvisor utils/sysinfo/sysinfo.go, GetSockets in machine/machine.go; kubelet cpumanager/topology/topology.go.
 */
export function describeForKubelet({ online: text, cpus, nodes, directories }: SysfsHost): HostDescription {
  const online = CpuSet.parse(text);
  const present = cpus.filter(({ id }) => online.has(id));
  const usable = present
    .filter((cpu): cpu is KubeletCpu => cpu.core !== undefined && cpu.socket !== undefined)
    .sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1));
  const cells = nodes.length > 0 ? nodes : groupCpus(usable, ({ socket }) => socket);
  const groups = cells.map(({ id, cpus: list }) => {
    const members = CpuSet.parse(list, MAX_CPU_ID);
    return { id, cores: coresOf(usable.filter((cpu) => members.has(cpu.id))) };
  });
  const threads = groups.flatMap(({ id: cell, cores }) =>
    cores.flatMap(({ cpus: coreCpus, socket, uncore = socket }) =>
      coreCpus.map(({ id }) => ({ id, cell, socket, uncore })),
    ),
  );
  if (threads.length === 0) throw new HostError('no CPU has a core_id, a physical_package_id and a NUMA node');
  const counts = {
    cpus: nodes.length > 0 ? threads.length : directories,
    sockets: new Set(present.map(({ socket = 0 }) => socket)).size,
  };
  const sockets = groupCpus(threads, ({ socket }) => socket, MAX_GROUP_ID);
  const uncores = groupCpus(threads, ({ uncore }) => uncore, MAX_GROUP_ID);
  return {
    cells: groupCpus(threads, ({ cell }) => cell, MAX_CELL_ID - 1),
    cores: groups.flatMap(({ cores }) => cores.map((core) => `${setOf(core.cpus)}`)),
    sockets,
    // Without a cache of its own, a core counts as part of the cache of its socket.
    ...(JSON.stringify(uncores) !== JSON.stringify(sockets) && { uncores }),
    ...((counts.cpus !== threads.length || counts.sockets !== sockets.length) && { counts }),
  };
}

function coresOf(cpus: readonly KubeletCpu[]): KubeletCore[] {
  const groups = [...groupBy(cpus, ({ core, socket }) => `${core} ${socket}`).values()];
  const list = groups.map((group): KubeletCore => ({ socket: group[0]!.socket, cpus: group }));
  for (const core of list) {
    const caches = core.cpus[0]?.caches ?? [];
    // cAdvisor ends at the first CPU without caches, or with one that it cannot read.
    if (caches.length === 0 || caches.includes(undefined)) break;
    // A cache of as many CPUs as the NUMA node would have with cores like this one belongs to the node.
    const cpusOfNode = list.length * core.cpus.length;
    core.uncore = caches.find((cache) => cache && cache.level > 2 && cache.sharedBy !== cpusOfNode)?.id;
  }
  return list;
}

/** Where the kubelet's view of the cores is not the kernel's, and what the kubelet does there. */
export function kubeletContradictions({ online, cpus }: SysfsHost, kubelet: Host): string[] {
  const siblings = new Set(cpus.map((cpu) => CpuSet.parse(cpu.siblings).intersect(kubelet.online).toString()));
  const different = kubelet.cores.filter((core) => !siblings.has(core.toString()));
  const ignored = CpuSet.parse(online).minus(kubelet.online);
  const excess = kubelet.counts.cpus - kubelet.online.size;
  const texts = [
    different.length > 0 &&
      `the kubelet takes CPUs ${different.slice(0, 4).join(' and ')} for one core each, by core_id and physical_package_id in a NUMA node; they are not the kernel's siblings`,
    !ignored.isEmpty &&
      `the kubelet ignores ${cpuListText(ignored.brief)} without core_id, physical_package_id or NUMA node`,
    excess > 0 && `without NUMA nodes the kubelet also counts ${cpusText(excess)} that it cannot assign`,
  ].filter((text) => text !== false);
  if (excess > 0 || different.length > 0) texts.push(`it counts ${cpusText(kubelet.threadsPerCore)} for each core`);
  return texts;
}
