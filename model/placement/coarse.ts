import { cpusText, numaNodesText } from '../amounts.ts';
import type { CpuSet } from '../cpu-set.ts';
import { wholeCoresWithin } from '../host.ts';
import { type ContainerRequest, lastingCpus, podCpus, podDevices, podMemory } from '../kubelet/pod-request.ts';
import { freeDevices } from '../kubelet/state.ts';
import { withUsage } from '../kubelet/usage.ts';
import {
  alignsOrRefuses,
  isPredicted,
  keepsWholeCores,
  locatedNetworks,
  networkNeedText,
  type PlacementHost,
  type PlacementNeeds,
  type PodInFlight,
  unpredictableFor,
  withAssignments,
} from './needs.ts';
import { cpusOfCells } from './networks.ts';
import { type Refusal, refusal } from './refusal.ts';

/** Counted when the node's report changes. */
export interface FreeCpus {
  readonly cell: number;
  readonly cpus: number;
  /** How many of them are in cores that are free as a whole. */
  readonly inWholeCores: number;
  /** Bytes and devices that the kubelet could allocate there, by resource. */
  readonly amounts: Amounts;
}

type Amounts = ReadonlyMap<string, number>;
const NO_AMOUNTS: Amounts = new Map();

/** Without CPUs that are reserved for the system or owned by a container. @param usage from `usageOf` */
export function freeCpusOf(node: PlacementHost, owned: CpuSet, usage = ''): readonly FreeCpus[] {
  const { host, reserved } = node;
  const free = host.online.minus(reserved).minus(owned);
  const whole = wholeCoresWithin(host, free);
  const amounts = amountsByCell(node, usage);
  return host.cells.map(({ id, cpus }) => ({
    cell: id,
    cpus: cpus.intersect(free).size,
    inWholeCores: cpus.intersect(whole).size,
    amounts: amounts.get(id) ?? NO_AMOUNTS,
  }));
}

/** By NUMA node: free memory and huge pages of a static memory manager, and free devices with a place. */
function amountsByCell(node: PlacementHost, usage: string): ReadonlyMap<number, Amounts> {
  if (!isPredicted(node)) return new Map();
  const { numaIds } = node.kubelet.topology;
  const state = withUsage(node.state, node.kubelet.topology, usage);
  const cells = new Map<number, Map<string, number>>();
  const add = (cell: number, resource: string, amount: number) => {
    const amounts = cells.get(cell) ?? new Map<string, number>();
    cells.set(cell, amounts.set(resource, (amounts.get(resource) ?? 0) + amount));
  };
  for (const [bit, { tables }] of (state.memory?.cells ?? []).entries())
    for (const [type, { free }] of tables) add(numaIds[bit] ?? 0, type, free);
  for (const resource of state.pools.keys())
    for (const { nodes = [] } of freeDevices(state, resource) ?? []) for (const cell of nodes) add(cell, resource, 1);
  return cells;
}

/** On nodes of one model. */
export interface CoarseNeed {
  readonly cpus: number;
  readonly wholeCores: boolean;
  /** Because the kubelet aligns the largest container; 0 for none. */
  readonly inOneCell: number;
  /** Bytes and devices of that container, which must be there too. */
  readonly alongside: readonly (readonly [resource: string, amount: number])[];
  /** NUMA nodes that are near each required network; undefined if no network restricts them. */
  readonly cells: ReadonlySet<number> | undefined;
}

/**
 * A guest that spans NUMA nodes needs only some CPUs near each network, so these do not limit where its CPUs are. Init
 * containers may run anywhere and on partial cores. @param wholeCores whether the pod must get them there
 */
export function coarseNeedOf(needs: PlacementNeeds, node: PlacementHost, wholeCores: boolean): CoarseNeed {
  const { request, networks, spansCells = false } = needs;
  const required = spansCells ? [] : networks.filter(({ affinity }) => affinity === 'required');
  const located = locatedNetworks({ networks: required }, node);
  const cells = node.host.cells.map(({ id }) => id).filter((id) => located.every((near) => near.cells.has(id)));
  const lasting = request.containers.filter(({ kind }) => kind !== 'init');
  const [container] = lasting.toSorted((a, b) => b.cpus - a.cpus);
  const largest = container?.cpus ?? 0;
  const largestCell = Math.max(0, ...node.host.cells.map(({ cpus }) => cpus.size));
  const isAligned = alignsOrRefuses(node) && largest <= largestCell;
  return {
    cpus: wholeCores || required.length > 0 ? lastingCpus(request) : podCpus(request),
    wholeCores,
    inOneCell: isAligned ? largest : 0,
    alongside: isAligned && podCpus(request) <= largestCell ? alongside(needs, node, container) : [],
    cells: located.length === 0 ? undefined : new Set(cells),
  };
}

/** What the kubelet aligns with the container's CPUs, because the whole pod would fit on one empty NUMA node. */
function alongside(needs: PlacementNeeds, node: PlacementHost, container?: ContainerRequest): CoarseNeed['alongside'] {
  if (container === undefined || unpredictableFor(needs, node) !== undefined) return [];
  const empty = [...amountsByCell(withAssignments(node, []), '').values()];
  const ofPod = new Map([...podMemory(needs.request), ...podDevices(needs.request)]);
  return [...container.memory, ...container.devices].filter(([resource]) => {
    const largest = Math.max(0, ...empty.map((amounts) => amounts.get(resource) ?? 0));
    return (ofPod.get(resource) ?? 0) <= largest;
  });
}

/**
 * CPUs left in the NUMA nodes that the pod could use; undefined if the exact prediction would also refuse the node.
 * @param inFlight CPUs that pods in flight will take; they are still among the free ones
 */
export function coarseFit(need: CoarseNeed, free: readonly FreeCpus[], inFlight: number): number | undefined {
  let usable = 0;
  let largest = 0;
  let all = 0;
  for (const { cell, cpus, inWholeCores, amounts } of free) {
    all += cpus;
    if (need.cells !== undefined && !need.cells.has(cell)) continue;
    const here = need.wholeCores ? inWholeCores : cpus;
    usable += here;
    const hasAmounts = need.alongside.every(([resource, amount]) => (amounts.get(resource) ?? 0) >= amount);
    if (hasAmounts) largest = Math.max(largest, here);
  }
  if (largest < need.inOneCell || usable < need.cpus) return undefined;
  if (inFlight === 0) return usable - need.cpus;
  // Pods in flight may take partial cores if the kubelet allows it, so only threads are counted there.
  const afterwards = all - inFlight - need.cpus;
  return afterwards < 0 ? undefined : Math.min(usable - need.cpus, afterwards);
}

/**
 * For a kubelet that cannot be predicted: passing is no promise. CPUs of pods in flight are subtracted from the node's.
 * @param assumed pods in flight on the node, which its report does not contain yet
 */
export function countCheck(
  needs: PlacementNeeds,
  node: PlacementHost,
  assumed: readonly PodInFlight[] = [],
): Refusal | undefined {
  const needed = podCpus(needs.request);
  if (needed === 0) return undefined;
  const free = node.host.online.minus(node.reserved).minus(node.owned).minus(node.polled);
  const inFlight = assumed.filter(({ request }) => !node.owners.has(request.uid) && request.uid !== needs.request.uid);
  const wholeCores = keepsWholeCores(needs, node) || node.wholeCoresOnly;
  const countIn = (cpus: CpuSet) => (wholeCores ? wholeCoresWithin(node.host, cpus) : cpus).size;

  let available = countIn(free);
  for (const { request, promised = true } of inFlight) {
    const cpus = podCpus(request);
    const isOdd = node.wholeCoresOnly && cpus % node.host.threadsPerCore !== 0;
    if (promised || (cpus <= available && !isOdd)) available -= cpus;
  }
  if (available < needed) {
    available = Math.max(0, available);
    const text = `${cpusText(needed)} needed; at most ${cpusText(available)} free`;
    const reason = wholeCores ? 'too-few-whole-cores' : 'too-few-cpus';
    return refusal(reason, text, needed - available);
  }
  const lasting = lastingCpus(needs.request);
  for (const { need, cells } of needs.spansCells ? [] : locatedNetworks(needs, node)) {
    const near = countIn(free.intersect(cpusOfCells(node.host, cells)));
    if (near >= lasting) continue;
    const text = `${networkNeedText(need)} is on ${numaNodesText(cells)}, where at most ${near} of ${lasting} needed CPUs are free`;
    return refusal('network-elsewhere', text, lasting - near);
  }
  return undefined;
}
