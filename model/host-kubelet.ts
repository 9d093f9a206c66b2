import { CpuSet } from './cpu-set.ts';
import { type Host, type HostDescription, HostError, MAX_CELL_ID, MAX_CPU_ID } from './host.ts';
import { grouped, type SysfsCpu, type SysfsHost } from './host-siblings.ts';

/** A core of the kubelet: the CPUs of a NUMA node with the same `core_id` and `physical_package_id`. */
interface KubeletCore {
  readonly socket: number;
  /** The CPUs in the order of their directories' names: cAdvisor asks the first one for the caches of the core. */
  readonly cpus: SysfsCpu[];
  uncore?: number | undefined;
}

/** A CPU that the kubelet uses. */
type KubeletCpu = SysfsCpu & { readonly core: number; readonly socket: number };

/** Largest id of a group in a report. */
const MAX_GROUP_ID = 65_535;

/**
 * Describes a host as cAdvisor describes it to the kubelet. CPUs without `core_id` or `physical_package_id` do not exist
 * for it, and without NUMA directories each package is a NUMA node.
 *
 * Source: GetNodesInfo, getCPUTopology, getCoresInfo and addCacheInfo in cAdvisor's utils/sysinfo/sysinfo.go, GetSockets
 * in machine/machine.go, Discover in pkg/kubelet/cm/cpumanager/topology/topology.go.
 * @throws HostError if no CPU is left
 */
export function describeForKubelet({ online: text, cpus, nodes, directories }: SysfsHost): HostDescription {
  const online = CpuSet.parse(text);
  const present = cpus.filter(({ id }) => online.has(id));
  const usable = present
    .filter((cpu): cpu is KubeletCpu => cpu.core !== undefined && cpu.socket !== undefined)
    .sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1));
  const cells = nodes.length > 0 ? nodes : grouped(usable, ({ socket }) => socket);
  const groups = cells.map(({ id, cpus: list }) => {
    const members = CpuSet.parse(list, MAX_CPU_ID);
    return { id, cores: coresOf(usable.filter((cpu) => members.has(cpu.id))) };
  });
  const threads = groups.flatMap(({ id: cell, cores }) =>
    cores.flatMap(({ cpus: own, socket, uncore = socket }) => own.map(({ id }) => ({ id, cell, socket, uncore }))),
  );
  if (threads.length === 0) throw new HostError('no CPU has a core_id, a physical_package_id and a NUMA node');
  const counts = {
    cpus: nodes.length > 0 ? threads.length : directories,
    sockets: new Set(present.map(({ socket = 0 }) => socket)).size,
  };
  const sockets = grouped(threads, ({ socket }) => socket, MAX_GROUP_ID);
  const uncores = grouped(threads, ({ uncore }) => uncore, MAX_GROUP_ID);
  return {
    cells: grouped(threads, ({ cell }) => cell, MAX_CELL_ID - 1),
    cores: groups.flatMap(({ cores }) => cores.map((core) => `${CpuSet.of(core.cpus.map(({ id }) => id))}`)),
    sockets,
    // Without a cache of its own, a core counts as part of the cache of its socket.
    ...(JSON.stringify(uncores) !== JSON.stringify(sockets) && { uncores }),
    ...((counts.cpus !== threads.length || counts.sockets !== sockets.length) && { counts }),
  };
}

function coresOf(cpus: readonly KubeletCpu[]): KubeletCore[] {
  const cores = new Map<string, KubeletCore>();
  for (const cpu of cpus) {
    const key = `${cpu.core} ${cpu.socket}`;
    const core = cores.get(key) ?? { socket: cpu.socket, cpus: [] };
    core.cpus.push(cpu);
    cores.set(key, core);
  }
  const list = [...cores.values()];
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
export function kubeletContradictions({ online: text, cpus }: SysfsHost, kubelet: Host): string[] {
  const { cores, online, counts, threadsPerCore } = kubelet;
  const siblings = new Set(cpus.map((cpu) => CpuSet.parse(cpu.siblings).intersect(online).toString()));
  const different = cores.filter((core) => !siblings.has(core.toString()));
  const ignored = CpuSet.parse(text).minus(online);
  const excess = counts.cpus - online.size;
  const perCore = `the kubelet counts ${countOf(threadsPerCore)} for each core`;
  const texts: string[] = [];
  if (different.length > 0) {
    const examples = different.slice(0, 4).join(' and ');
    texts.push(
      `the kubelet takes CPUs ${examples} for one core each, by core_id and physical_package_id in a NUMA node; they are not the kernel's siblings`,
      threadsPerCore > 1
        ? `${perCore}: with full-pcpus-only it rejects ${threadsPerCore + 1} CPUs as not whole cores`
        : perCore,
    );
  }
  if (!ignored.isEmpty) {
    texts.push(`the kubelet ignores CPUs ${ignored.brief}: they have no core_id, physical_package_id or NUMA node`);
  }
  if (excess > 0) {
    texts.push(`without NUMA nodes the kubelet also counts ${countOf(excess)} that it cannot assign: ${perCore}`);
  }
  return texts;
}

const countOf = (cpus: number) => (cpus === 1 ? '1 CPU' : `${cpus} CPUs`);
