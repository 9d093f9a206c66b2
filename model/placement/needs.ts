import { ANNOTATED_THREADS_PER_CORE } from '../alignment.ts';
import { CpuSet, unionOf } from '../cpu-set.ts';
import { type Host, MAX_CELL_ID } from '../host.ts';
import { assertOnline } from '../host-cores.ts';
import type { Kubelet, Unpredictable } from '../kubelet/kubelet.ts';
import type { PodRequest } from '../kubelet/pod-request.ts';
import {
  assignedCpus,
  assignmentsOf,
  type HostReport,
  hostOfReport,
  kubeletOfReport,
  stateOfReport,
} from '../kubelet/report.ts';
import { type KubeletState, ownedCpus } from '../kubelet/state.ts';
import { type MaskRequest, maskRequestKey } from '../launcher/mask-request.ts';

/** A network interface whose place matters, and how much. */
export interface NetworkNeed {
  /** Its interfaces, as their user knows them; '' where they are not known. */
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
  /** On which of the node's CPUs the VM wants its vCPUs; only without CPUs of its own. */
  readonly mask?: MaskRequest | undefined;
  /** Whole CPUs that nothing asks to be exclusive: a kubelet that gives no exclusive CPUs runs the pod on shared ones. */
  readonly mayShare?: boolean | undefined;
  /** What needsKey would make of them, where it is known. */
  readonly key?: string | undefined;
}

/** NUMA nodes by network on one node. An empty set: the network is there, its NUMA node is not known. */
export interface NetworkCells {
  readonly physnets: ReadonlyMap<string, CpuSet>;
  readonly tunnel: CpuSet | undefined;
}

const keys = new WeakMap<PlacementNeeds, string>();

/** The same text for needs that differ in the pod's uid alone: what fits one of them fits all. */
export function needsKey(needs: PlacementNeeds): string {
  let key = needs.key ?? keys.get(needs);
  if (key === undefined) {
    const { request, networks, wholeCores = false, spansCells = false, mask, mayShare = false } = needs;
    const containers = request.containers.map(({ kind, cpus, devices, memory }) => [
      kind,
      cpus,
      [...devices],
      [...memory],
    ]);
    const wanted = networks.map(({ kind, physnet, affinity }) => [kind, physnet, affinity]);
    key = JSON.stringify([
      containers,
      wanted,
      wholeCores,
      spansCells,
      mayShare,
      ...(mask ? [maskRequestKey(mask)] : []),
    ]);
    keys.set(needs, key);
  }
  return key;
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
  /** The kubelet gives no exclusive CPUs (CPU manager policy `none`). */
  readonly sharedOnly: boolean;
  /** The topology manager's policy; '' where it is not reported. */
  readonly alignment: string;
  /** CPUs that the virtual switch polls on. */
  readonly polled: CpuSet;
  /** The node's agent serves the devices by which pods prefer a network. */
  readonly hints: boolean;
  /** The node's agent sets the CPU masks of VMs. */
  readonly pinsVMs: boolean;
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
    owned: unionOf(assignedCpus(report.assignments)),
    shown: new Set(report.assignments.map(({ podUID }) => podUID)),
    wholeCoresOnly: report.cpuManager.options?.['full-pcpus-only'] === 'true',
    sharedOnly: report.cpuManager.policy === 'none',
    alignment: report.topologyManager?.policy ?? '',
    polled: CpuSet.parse(report.pmdCPUs ?? ''),
    hints: report.hintsNetworks === true,
    pinsVMs: report.pinsVMs ?? true,
    networks: {
      physnets: new Map((report.physnets ?? []).map(({ name, cells }) => [name, CpuSet.parse(cells, MAX_CELL_ID)])),
      tunnel: report.tunnel && CpuSet.parse(report.tunnel.cells, MAX_CELL_ID),
    },
  });
}

/**
 * Whether the kubelet refuses a pod that it cannot align (restricted, single-numa-node). With any other policy, room that
 * comes free never costs a pod its place.
 */
export function alignsOrRefuses({ alignment }: PlacementHost): boolean {
  return alignment === 'restricted' || alignment === 'single-numa-node';
}

/** Whether the pod would run on the node's shared CPUs, so that it takes none from anybody there. */
export function sharesOn({ mayShare }: PlacementNeeds, { sharedOnly }: PlacementHost): boolean {
  return mayShare === true && sharedOnly;
}

/**
 * Whether the promise of whole cores holds on a node. It is for cores of two threads, and for larger ones only where the
 * pod was padded to them, as for kubelets that ask for it: other nodes with larger cores give the pod threads.
 */
export function keepsWholeCores({ wholeCores, request }: PlacementNeeds, { host }: PlacementHost): boolean {
  if (wholeCores !== true) return false;
  if (host.threadsPerCore <= ANNOTATED_THREADS_PER_CORE) return true;
  return request.containers.every(({ kind, cpus }) => kind === 'init' || cpus % host.threadsPerCore === 0);
}

/** Who owns which CPUs of a node, as a report has it. */
export type ReportedAssignments = HostReport['assignments'];

/**
 * The same node with other pods on it: much cheaper than to prepare it again.
 * @throws ParseError if a list is no CPU list
 */
export function withAssignments(node: PlacementHost, assignments: ReportedAssignments): PlacementHost {
  const { kubelet, state } = node;
  const sets = assignmentsOf(assignments);
  return Object.freeze({
    ...node,
    state: state && !('unpredictable' in kubelet) ? kubelet.initialState(state.pools, sets) : undefined,
    owned: unionOf([...sets.values()].flatMap((containers) => [...containers.values()])),
    shown: new Set(sets.keys()),
  });
}

/** The same node after some pods have left it; uids that are not on it change nothing. */
export function withoutPods(node: PlacementHost, uids: ReadonlySet<string>): PlacementHost {
  const { kubelet, state } = node;
  if ('unpredictable' in kubelet || !state) return node;
  const after = [...uids].reduce((left, uid) => kubelet.remove(left, uid), state);
  return Object.freeze({ ...node, state: after, owned: ownedCpus(after), shown: new Set(after.assignments.keys()) });
}

/** The NUMA nodes where a network is; undefined where the node does not have it at all. */
export function cellsOfNetwork({ physnets, tunnel }: NetworkCells, need: NetworkNeed): CpuSet | undefined {
  return need.kind === 'tunnel' ? tunnel : physnets.get(need.physnet ?? '');
}

/** The network as messages name it. */
export function networkText({ name, kind, physnet }: NetworkNeed): string {
  const network = kind === 'tunnel' ? 'the tunnel' : `physnet ${physnet}`;
  return name === '' ? network : `interface ${name} (${network})`;
}
