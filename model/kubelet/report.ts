import { CpuSet } from '../cpu-set.ts';
import { createHost, type Host } from '../host.ts';
import { PHYSNET_RESOURCE_PREFIX, physnetResource, TUNNEL_RESOURCE } from '../names.ts';
import type { DevicePool, DevicePools } from './devices.ts';
import { createKubelet, type Kubelet, type Unpredictable } from './kubelet.ts';
import type { CellMemory } from './memory-state.ts';
import type { KubeletState } from './state.ts';

interface CpuGroup {
  readonly id: number;
  readonly cpus: string;
}

type Options = Readonly<Record<string, string>>;

/** What an agent reports of its node; the status of a NodeTopology has this form. */
export interface HostReport {
  readonly kubeletVersion?: string | undefined;
  readonly cells: readonly CpuGroup[];
  readonly cores: readonly string[];
  readonly sockets?: readonly CpuGroup[] | undefined;
  readonly uncores?: readonly CpuGroup[] | undefined;
  readonly reserved: string;
  readonly cpuManager: { readonly policy: string; readonly options?: Options | undefined };
  readonly topologyManager?:
    | { readonly policy: string; readonly scope?: string | undefined; readonly options?: Options | undefined }
    | undefined;
  readonly memoryManager?: { readonly policy: string; readonly cells?: readonly CellMemory[] | undefined } | undefined;
  readonly distances?: Readonly<Record<number, readonly number[]>> | undefined;
  readonly assignments: readonly { readonly podUID: string; readonly container: string; readonly cpus: string }[];
  readonly physnets?: readonly { readonly name: string; readonly cells: string }[] | undefined;
  readonly tunnel?: { readonly cells: string } | undefined;
  /** CPUs that poll-mode driver threads of the virtual switch keep busy. */
  readonly pmdCPUs?: string | undefined;
}

/**
 * The host of a report.
 * @throws HostError if it contradicts itself; ParseError if a list is no CPU list
 */
export function hostOfReport(report: HostReport): Host {
  const { cells, cores, sockets, uncores } = report;
  return createHost({ cells, cores, ...(sockets && { sockets }), ...(uncores && { uncores }) });
}

/**
 * The kubelet of a report, if it can be predicted.
 * @throws HostError if the report's topology contradicts itself; ParseError if a list is no CPU list
 */
export function kubeletOfReport(report: HostReport, host = hostOfReport(report)): Kubelet | Unpredictable {
  if (!report.kubeletVersion) return { unpredictable: 'the kubelet version is not reported' };
  // An agent that could read the kubelet's configuration reports a policy, if only `none`.
  if (!report.topologyManager) return { unpredictable: "the kubelet's configuration is not reported" };
  return createKubelet({
    version: report.kubeletVersion,
    host,
    cpuManager: report.cpuManager,
    topologyManager: report.topologyManager,
    memoryManager: report.memoryManager,
    reserved: CpuSet.parse(report.reserved),
    distances: report.distances,
  });
}

/**
 * What a reported kubelet has given away. Memory blocks and devices are not in a report: devices of physnets are never
 * used up, and of other plugins the scheduler has counted the room.
 * @throws ParseError if a list is no CPU list
 */
export function stateOfReport(kubelet: Kubelet, report: HostReport): KubeletState {
  return kubelet.initialState(networkPools(report), assignmentsOf(report.assignments));
}

/** @throws ParseError if a list is no CPU list */
export function assignmentsOf(assignments: HostReport['assignments']): Map<string, Map<string, CpuSet>> {
  const byPod = new Map<string, Map<string, CpuSet>>();
  for (const { podUID, container, cpus } of assignments) {
    const ofPod = byPod.get(podUID) ?? new Map<string, CpuSet>();
    byPod.set(podUID, ofPod.set(container, CpuSet.parse(cpus)));
  }
  return byPod;
}

/** The device resources that stand for the node's networks. One device each: it is a place, and never used up. */
export function networkPools({ physnets = [], tunnel }: Pick<HostReport, 'physnets' | 'tunnel'>): DevicePools {
  const pools = new Map<string, DevicePool>();
  const add = (resource: string, cells: string) => {
    const nodes = CpuSet.parse(cells).toArray();
    const device = nodes.length === 0 ? { id: '0', healthy: true } : { id: '0', healthy: true, nodes };
    pools.set(resource, { devices: [device], endless: true });
  };
  for (const { name, cells } of physnets) add(physnetResource(name), cells);
  if (tunnel) add(TUNNEL_RESOURCE, tunnel.cells);
  return pools;
}

/** Whether a resource stands for a network of the node. */
export function isNetworkResource(resource: string): boolean {
  return resource.startsWith(PHYSNET_RESOURCE_PREFIX) || resource === TUNNEL_RESOURCE;
}
