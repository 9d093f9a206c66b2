import { CpuSet, unionOf } from '../cpu-set.ts';
import type { Host } from '../host.ts';
import { assertOnline } from '../host-cores.ts';
import type { Kubelet, Unpredictable } from '../kubelet/kubelet.ts';
import type { PodRequest } from '../kubelet/pod-request.ts';
import { type HostReport, hostOfReport, kubeletOfReport, stateOfReport } from '../kubelet/report.ts';
import type { KubeletState } from '../kubelet/state.ts';

/** A network interface whose place matters, and how much. */
export interface NetworkNeed {
  /** The interface, as its user knows it. */
  readonly name: string;
  readonly kind: 'physnet' | 'tunnel';
  /** There when the kind is physnet. */
  readonly physnet?: string | undefined;
  readonly affinity: 'required' | 'preferred' | 'none';
}

/** What a pod needs of a node, beyond what kube-scheduler itself looks at. */
export interface PlacementNeeds {
  readonly request: PodRequest;
  readonly networks: readonly NetworkNeed[];
  /** The pod was promised whole cores (the full-pcpus-only annotation), whatever the node's kubelet promises. */
  readonly wholeCores?: boolean | undefined;
  /** The guest sees the NUMA nodes that its CPUs span (guestMappingPassthrough); otherwise it is one guest cell. */
  readonly spansCells?: boolean | undefined;
}

/** NUMA nodes by network on one node. An empty set: the network is there, its NUMA node is not known. */
export interface NetworkCells {
  readonly physnets: ReadonlyMap<string, CpuSet>;
  readonly tunnel: CpuSet | undefined;
}

/** A node made ready for placing pods on it: once for each report, not for each pod. */
export interface PlacementHost {
  readonly host: Host;
  readonly kubelet: Kubelet | Unpredictable;
  /** Absent where the kubelet cannot be predicted. */
  readonly state: KubeletState | undefined;
  readonly reserved: CpuSet;
  /** CPUs that some container owns. */
  readonly owned: CpuSet;
  /** Uids of the pods that own them. */
  readonly shown: ReadonlySet<string>;
  /** The kubelet gives whole cores only (full-pcpus-only). */
  readonly wholeCoresOnly: boolean;
  /** CPUs that the virtual switch polls on. */
  readonly polled: CpuSet;
  readonly networks: NetworkCells;
}

/**
 * Makes a node ready from its report.
 * @throws HostError if the report contradicts itself; ParseError if a list is no CPU list
 */
export function preparedHost(report: HostReport): PlacementHost {
  const host = hostOfReport(report);
  const reserved = CpuSet.parse(report.reserved);
  assertOnline(host, reserved, 'reserved CPUs');
  const kubelet = kubeletOfReport(report, host);
  return Object.freeze({
    host,
    kubelet,
    state: 'unpredictable' in kubelet ? undefined : stateOfReport(kubelet, report),
    reserved,
    owned: unionOf(report.assignments.map(({ cpus }) => CpuSet.parse(cpus))),
    shown: new Set(report.assignments.map(({ podUID }) => podUID)),
    wholeCoresOnly: report.cpuManager.options?.['full-pcpus-only'] === 'true',
    polled: CpuSet.parse(report.pmdCPUs ?? ''),
    networks: {
      physnets: new Map((report.physnets ?? []).map(({ name, cells }) => [name, CpuSet.parse(cells)])),
      tunnel: report.tunnel && CpuSet.parse(report.tunnel.cells),
    },
  });
}

/** The NUMA nodes where a network is; undefined where the node does not have it at all. */
export function cellsOfNetwork({ physnets, tunnel }: NetworkCells, need: NetworkNeed): CpuSet | undefined {
  return need.kind === 'tunnel' ? tunnel : physnets.get(need.physnet ?? '');
}

/** The network as messages name it. */
export function networkText(need: NetworkNeed): string {
  const network = need.kind === 'tunnel' ? 'the tunnel' : `physnet ${need.physnet}`;
  return `interface ${need.name} (${network})`;
}
