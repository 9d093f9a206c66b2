import { ANNOTATED_THREADS_PER_CORE } from '../alignment.ts';
import { CpuSet, unionOf } from '../cpu-set.ts';
import { assertOnline, createHost, type Host, MAX_CELL_ID, missingThreads } from '../host.ts';
import type { HostReport, ReportedDevices } from '../kubelet/host-report.ts';
import type { Kubelet, Unpredictable } from '../kubelet/kubelet.ts';
import type { PodRequest } from '../kubelet/pod-request.ts';
import { assignedCpus, assignmentsOf, isReportedResource, kubeletOfReport, stateOfReport } from '../kubelet/report.ts';
import { type CpuAssignments, cpusOf, type KubeletState } from '../kubelet/state.ts';
import { withUsage } from '../kubelet/usage.ts';
import { type MaskRequest, maskRequestKey } from '../launcher/mask-request.ts';
import type { NodeNetworks } from '../networks/reach.ts';

export interface NetworkNeed {
  /** '' if unknown. */
  readonly name: string;
  readonly kind: 'physnet' | 'tunnel';
  /** Of a physnet. */
  readonly physnet?: string | undefined;
  readonly affinity: 'required' | 'preferred' | 'none';
}

/** In addition to what kube-scheduler checks itself. */
export interface PlacementNeeds {
  readonly request: PodRequest;
  readonly networks: readonly NetworkNeed[];
  /** The promise of whole cores (full-pcpus-only annotation), whether or not the node's kubelet enforces it. */
  readonly wholeCores?: boolean | undefined;
  /** guestMappingPassthrough: the guest sees the NUMA nodes that its CPUs span; otherwise it is one cell. */
  readonly spansCells?: boolean | undefined;
  /** Default: 1. */
  readonly guestThreads?: number | undefined;
  /** Only without exclusive CPUs. */
  readonly mask?: MaskRequest | undefined;
  /** Whole CPUs without a reason to be exclusive: a kubelet without exclusive CPUs runs it on shared ones. */
  readonly mayShare?: boolean | undefined;
  readonly key?: string | undefined;
}

/** Bound to a node, or about to be, and not in its report yet. */
export interface PodInFlight extends PlacementNeeds {
  /**
   * Whether it was predicted to fit there. Default: true. Else, as for a pod that names its node itself, it counts for
   * what the kubelet would give it, and for nothing if the kubelet would refuse it.
   */
  readonly promised?: boolean | undefined;
}

/** Equal for needs that differ only in the pod's uid: a node that fits one of them fits all. */
export function needsKey(needs: PlacementNeeds): string {
  if (needs.key !== undefined) return needs.key;
  const { request, networks, wholeCores = false, spansCells = false, mask, mayShare = false, guestThreads = 1 } = needs;
  return JSON.stringify([
    request.containers.map(({ kind, cpus, devices, memory }) => [kind, cpus, [...devices], [...memory]]),
    networks.map(({ kind, physnet, affinity }) => [kind, physnet, affinity]),
    [wholeCores, spansCells, mayShare, guestThreads],
    mask && maskRequestKey(mask),
  ]);
}

/** Prepared once for each report instead of once for each pod. */
export interface PlacementHost {
  readonly host: Host;
  readonly kubelet: Kubelet | Unpredictable;
  /** Absent if the kubelet cannot be predicted. */
  readonly state: KubeletState | undefined;
  readonly reserved: CpuSet;
  /** CPUs that are present and not online. */
  readonly offline: CpuSet;
  readonly owned: CpuSet;
  readonly owners: ReadonlySet<string>;
  /** Whether the kubelet assigns whole cores only (full-pcpus-only). */
  readonly wholeCoresOnly: boolean;
  /** Whether the kubelet assigns no exclusive CPUs (CPU manager policy `none`). */
  readonly sharedOnly: boolean;
  /** Policy of the topology manager; '' if it is not reported. */
  readonly alignment: string;
  readonly polled: CpuSet;
  readonly pinsVMs: boolean;
  readonly networks: NodeNetworks;
  /** Those of the report. Undefined: not known, so pods that ask for one are not predicted. */
  readonly devices: readonly ReportedDevices[] | undefined;
  /** What else the report lacks: pods that ask for it are not predicted. */
  readonly notReported: NotReported;
}

/** Whose kubelet can be predicted. */
export type PredictedHost = PlacementHost & { readonly kubelet: Kubelet; readonly state: KubeletState };

export function isPredicted(node: PlacementHost): node is PredictedHost {
  return node.state !== undefined && !('unpredictable' in node.kubelet);
}

interface NotReported {
  readonly memory: boolean;
  /** Resources with unhealthy devices on NUMA nodes that the report does not name. */
  readonly unhealthy: ReadonlySet<string>;
}

/** @param nearest whether an unpredicted version counts as the nearest predicted one @throws HostError, ParseError */
export function preparedHost(report: HostReport, nearest = false): PlacementHost {
  const host = createHost(report);
  const reserved = CpuSet.parse(report.reserved);
  assertOnline(host, reserved, 'reserved CPUs');
  const kubelet = kubeletOfReport(report, host, nearest);
  return Object.freeze({
    host,
    kubelet,
    state: 'unpredictable' in kubelet ? undefined : stateOfReport(kubelet, report),
    reserved,
    offline: report.offline === undefined ? missingThreads(host) : CpuSet.parse(report.offline),
    owned: unionOf(assignedCpus(report.assignments)),
    owners: new Set(report.assignments.map(({ podUID }) => podUID)),
    wholeCoresOnly: report.cpuManager.options?.['full-pcpus-only'] === 'true',
    sharedOnly: report.cpuManager.policy === 'none',
    alignment: report.topologyManager?.policy ?? '',
    polled: CpuSet.parse(report.pmdCPUs ?? ''),
    pinsVMs: report.pinsVMs ?? true,
    networks: {
      physnets: new Map((report.physnets ?? []).map(({ name, cells }) => [name, CpuSet.parse(cells, MAX_CELL_ID)])),
      tunnel: report.tunnel && CpuSet.parse(report.tunnel.cells, MAX_CELL_ID),
    },
    devices: report.devices,
    notReported: notReportedIn(report),
  });
}

function notReportedIn({ devices, memoryManager }: HostReport): NotReported {
  const unhealthy = (devices ?? []).filter(({ unhealthy = 0, groups }) => unhealthy > 0 && groups.length > 1);
  return {
    memory: memoryManager?.cells?.some(({ state }) => state === undefined) ?? false,
    unhealthy: new Set(unhealthy.map(({ resource }) => resource)),
  };
}

/** Why the kubelet's decision about a pod cannot be predicted with what its node reports. */
export function unpredictableFor(
  { request }: PlacementNeeds,
  { kubelet, state, alignment, devices, notReported }: PlacementHost,
): string | undefined {
  if ('unpredictable' in kubelet) return kubelet.unpredictable;
  const { containers } = request;
  if (state?.memory !== undefined && notReported.memory && containers.some(({ memory }) => memory.size > 0)) {
    return 'the state of the memory manager is not reported';
  }
  if (alignment === 'none') return undefined;
  const resources = containers.flatMap((container) => [...container.devices.keys()]).filter(isReportedResource);
  const [resource] = resources;
  if (devices === undefined && resource !== undefined) return `the devices of ${resource} are not reported`;
  const unhealthy = resources.find((name) => notReported.unhealthy.has(name));
  return unhealthy && `the NUMA nodes of unhealthy devices of ${unhealthy} are not reported`;
}

/** restricted, single-numa-node. With any other policy, more free CPUs never cost a pod its place. */
export function alignsOrRefuses({ alignment }: PlacementHost): boolean {
  return alignment === 'restricted' || alignment === 'single-numa-node';
}

/** Whether the pod would run on the node's shared CPUs and so take none exclusively. */
export function sharesOn({ mayShare }: PlacementNeeds, { sharedOnly }: PlacementHost): boolean {
  return mayShare === true && sharedOnly;
}

/** The promise covers cores with two threads, and larger ones only if the pod was padded to them. */
export function keepsWholeCores({ wholeCores, request }: PlacementNeeds, { host }: PlacementHost): boolean {
  if (wholeCores !== true) return false;
  if (host.threadsPerCore <= ANNOTATED_THREADS_PER_CORE) return true;
  return request.containers.every(({ kind, cpus }) => kind === 'init' || cpus % host.threadsPerCore === 0);
}

export type ReportedAssignments = HostReport['assignments'];

/** Much cheaper than preparing it again. @param usage of these pods, from `usageOf` @throws ParseError */
export function withAssignments(node: PlacementHost, assignments: ReportedAssignments, usage = ''): PlacementHost {
  return withOwners(node, assignmentsOf(assignments), usage);
}

/** The same with parsed CPU lists. */
export function withOwners(node: PlacementHost, owners: CpuAssignments, usage = ''): PlacementHost {
  const state = isPredicted(node)
    ? withUsage(node.kubelet.initialState(node.state.pools, owners), node.kubelet.topology, usage)
    : undefined;
  return Object.freeze({ ...node, state, owned: cpusOf(owners), owners: new Set(owners.keys()) });
}

/** The same node after its kubelet has admitted a pod; unchanged if it would not. */
export function withPod(node: PlacementHost, request: PodRequest): PlacementHost {
  const admission = isPredicted(node) ? node.kubelet.admit(node.state, request) : undefined;
  return admission?.admitted ? withState(node, admission.state) : node;
}

/** The same node with all devices and memory free: a report does not tell which pod has those in use. */
export function withFreeResources(node: PlacementHost): PlacementHost {
  if (!isPredicted(node)) return node;
  return withState(node, node.kubelet.initialState(node.state.pools, node.state.assignments));
}

/** Uids that are not on it change nothing. */
export function withoutPods(node: PlacementHost, uids: ReadonlySet<string>): PlacementHost {
  if (!isPredicted(node)) return node;
  const after = [...uids].reduce((left, uid) => node.kubelet.remove(left, uid), node.state);
  return withState(node, after);
}

function withState(node: PlacementHost, state: KubeletState): PlacementHost {
  return Object.freeze({ ...node, state, owned: cpusOf(state.assignments), owners: new Set(state.assignments.keys()) });
}

/** Undefined if the node does not have the network. */
export function cellsOfNetwork({ physnets, tunnel }: NodeNetworks, need: NetworkNeed): CpuSet | undefined {
  return need.kind === 'tunnel' ? tunnel : physnets.get(need.physnet ?? '');
}

/** The required networks of a pod that have a known place on the node. */
export function locatedNetworks(
  { networks }: Pick<PlacementNeeds, 'networks'>,
  node: Pick<PlacementHost, 'networks'>,
): { readonly need: NetworkNeed; readonly cells: CpuSet }[] {
  return networks.flatMap((need) => {
    const cells = need.affinity === 'required' ? cellsOfNetwork(node.networks, need) : undefined;
    return cells === undefined || cells.isEmpty ? [] : [{ need, cells }];
  });
}

/** The network, for messages. */
export function networkNeedText({ name, kind, physnet }: NetworkNeed): string {
  const network = kind === 'tunnel' ? 'the tunnel' : `physnet ${physnet}`;
  return name === '' ? network : `interface ${name} (${network})`;
}
