import { amountText, countText, cpusText, numaNodesText } from '../amounts.ts';
import { CpuSet } from '../cpu-set.ts';
import type { Admission } from '../kubelet/admission.ts';
import type { Kubelet } from '../kubelet/kubelet.ts';
import { type PodRequest, podCpus, podDevices, podMemory } from '../kubelet/pod-request.ts';
import type { KubeletState } from '../kubelet/state.ts';
import { locatedNetworks, networkNeedText, type PlacementHost, type PlacementNeeds } from './needs.ts';
import { cellsTouched, cpusOfCells } from './networks.ts';
import { freeCores, type Refusal, refusal } from './refusal.ts';

type Rejected = Extract<Admission, { admitted: false }>;

/** With the resource, its place, the requested and the available amount. */
export function refusedByKubelet(
  needs: PlacementNeeds,
  node: PlacementHost,
  kubelet: Kubelet,
  state: KubeletState,
  rejected: Rejected,
): Refusal {
  const detail = (what: string) => `${what}; the kubelet would answer: ${rejected.message}`;
  if (rejected.reason === 'KubeletHangs') return refusal('hangs-kubelet', rejected.message, { resource: 'cores' });
  if (rejected.reason === 'SMTAlignmentError') {
    const refused = misaligned(needs, node) ?? tooFewCores(needs, node, state);
    return { ...refused, detail: detail(refused.detail) };
  }
  const needed = podCpus(needs.request);
  const free = state.defaultSet.minus(node.reserved).size;
  if (rejected.reason === 'TopologyAffinityError') {
    const refused =
      networkElsewhere(needs, node, state, needed) ??
      tiedByInit(needs, node, kubelet, state) ??
      noCommonNode(needs, node, kubelet, state);
    return { ...refused, detail: detail(refused.detail) };
  }
  if (kubelet.cpu && free < needed) {
    const what = `${cpusText(needed)} needed, ${free} free`;
    return refusal('too-few-cpus', detail(what), { resource: 'cpus', needed, available: free });
  }
  const short = shortResource(needs.request, node, kubelet, state) ?? 'the kubelet has too little of a resource';
  return refusal('resources', detail(short), { resource: 'other' });
}

function misaligned({ request }: PlacementNeeds, { host: { threadsPerCore } }: PlacementHost): Refusal | undefined {
  const odd = request.containers.find(({ cpus }) => cpus % threadsPerCore !== 0);
  if (odd === undefined) return undefined;
  const text = `container ${odd.name} requests ${cpusText(odd.cpus)}, not a multiple of ${threadsPerCore} threads per core`;
  return refusal('misaligned', text, { resource: 'cpus' });
}

function tooFewCores({ request }: PlacementNeeds, node: PlacementHost, state: KubeletState): Refusal {
  const threads = node.host.threadsPerCore;
  const available = freeCores(node, state).length;
  const cores = Math.ceil(podCpus(request) / threads);
  const counts = { needed: cores * threads, available: available * threads };
  const text = `${countText(cores, 'whole core')} needed, ${available} free`;
  return refusal('too-few-whole-cores', text, { resource: 'cores', ...counts });
}

function networkElsewhere(
  needs: PlacementNeeds,
  node: PlacementHost,
  state: KubeletState,
  needed: number,
): Refusal | undefined {
  const free = state.defaultSet.minus(node.reserved);
  for (const { need, cells } of locatedNetworks(needs, node)) {
    const available = free.intersect(cpusOfCells(node.host, cells)).size;
    if (available >= needed) continue;
    const text = `${networkNeedText(need)} is on ${numaNodesText(cells)}, where ${available} of ${needed} needed CPUs are free`;
    const details = { resource: 'cpus', where: cells.toArray(), needed: needed, available } as const;
    return refusal('network-elsewhere', text, details);
  }
  return undefined;
}

/** The init container that ties a later one, which reuses its CPUs, to its NUMA node (in container scope). */
function tiedByInit(
  { request }: PlacementNeeds,
  node: PlacementHost,
  kubelet: Kubelet,
  state: KubeletState,
): Refusal | undefined {
  const { containers } = request;
  const lasting = containers.filter(({ kind }) => kind !== 'init');
  const largest = lasting.toSorted((a, b) => b.cpus - a.cpus)[0];
  const init = containers.find(({ kind, cpus }) => kind === 'init' && cpus > 0 && cpus < (largest?.cpus ?? 0));
  if (init === undefined || largest === undefined) return undefined;
  if (!kubelet.admit(state, { ...request, containers: lasting }).admitted) return undefined;
  const first = kubelet.admit(state, { ...request, containers: [init] });
  if (!first.admitted) return undefined;
  const cells = cellsTouched(node.host, first.containers[0]?.cpus ?? CpuSet.EMPTY);
  const free = state.defaultSet.minus(node.reserved).intersect(cpusOfCells(node.host, CpuSet.of(cells))).size;
  const text =
    `init container ${init.name}: it gets ${cpusText(init.cpus)} of ${numaNodesText(cells.join())}, which container ` +
    `${largest.name} reuses, so ${cpusText(largest.cpus)} are needed there; ${free} free`;
  return refusal('tied-by-init', text, { resource: 'numa', where: cells, ...shortage(largest.cpus, free) });
}

function noCommonNode(
  { request }: PlacementNeeds,
  node: PlacementHost,
  kubelet: Kubelet,
  state: KubeletState,
): Refusal {
  const short = shortResource(request, node, kubelet, state);
  if (short !== undefined) return refusal('no-common-node', short, { resource: 'other' });
  const needed = podCpus(request);
  const free = state.defaultSet.minus(node.reserved);
  const byCell = new Map(node.host.cells.map(({ id, cpus }) => [id, free.intersect(cpus).size]));
  const text = `${cpusText(needed)} needed near each other; ${freeByCell(byCell)}`;
  return refusal('no-common-node', text, { resource: 'numa', ...shortage(needed, Math.max(0, ...byCell.values())) });
}

/** More than enough may be free, and in the wrong places. */
function shortage(needed: number, available: number): Pick<Refusal, 'needed' | 'available'> {
  return available < needed ? { needed: needed, available } : {};
}

/** By the id of the NUMA node. */
type ByCell = ReadonlyMap<number, number>;

/** With its place and amounts; undefined if the CPUs are the reason. */
export function shortResource(
  request: PodRequest,
  { host, reserved }: PlacementHost,
  { topology }: Kubelet,
  state: KubeletState,
): string | undefined {
  const free = state.defaultSet.minus(reserved);
  const freeCpus = new Map(host.cells.map((cell) => [cell.id, free.intersect(cell.cpus).size]));
  const cpus = { free: freeCpus, needed: podCpus(request) };
  for (const [resource, count] of podDevices(request)) {
    const text = shortDevice(state, topology.numaIds, cpus, { resource, count });
    if (text !== undefined) return `${resource}: ${text}`;
  }
  if (state.memory === undefined) return undefined;
  for (const [type, bytes] of podMemory(request)) {
    const ofCells = state.memory.cells.map(({ tables }) => tables.get(type)?.free ?? 0);
    const text = shortMemory(type, new Map(topology.numaIds.map((id, bit) => [id, ofCells[bit] ?? 0])), bytes, cpus);
    if (text !== undefined) return `${type}: ${text}`;
  }
  return undefined;
}

interface CpuAmounts {
  readonly free: ByCell;
  readonly needed: number;
}

function shortDevice(
  state: KubeletState,
  numaIds: readonly number[],
  { free, needed }: CpuAmounts,
  { resource, count }: { readonly resource: string; readonly count: number },
): string | undefined {
  const devices = freeDevices(state, resource);
  if (devices === undefined || count === 0) return undefined;
  if (devices.length < count) return `${amountText(resource, count)} needed, ${devices.length} free`;
  if (devices.every((nodes) => nodes === undefined || nodes.length === 0)) return undefined;
  const byCell = new Map(numaIds.map((id) => [id, devices.filter((nodes) => nodes?.includes(id)).length]));
  const cells = cellsWith(byCell, count);
  if (cells.length === 0) return `${amountText(resource, count)} needed near each other; ${freeByCell(byCell)}`;
  const most = Math.max(...cells.map((id) => free.get(id) ?? 0));
  if (most >= needed) return undefined;
  const owned = cells.length === 1 ? 'its CPUs are owned' : 'their CPUs are owned';
  const cpus = most === 0 ? owned : `${most} of ${needed} needed CPUs are free there`;
  return `free on ${numaNodesText(cells.join())} only; ${cpus}`;
}

function shortMemory(type: string, byCell: ByCell, bytes: number, { free, needed }: CpuAmounts): string | undefined {
  const total = [...byCell.values()].reduce((sum, amount) => sum + amount, 0);
  if (total < bytes) return `${amountText(type, bytes)} needed, ${amountText(type, total)} free`;
  const cells = cellsWith(free, needed);
  if (cells.length === 0 || cells.some((id) => (byCell.get(id) ?? 0) >= bytes)) return undefined;
  const freeTexts = cells.map((id) => `${amountText(type, byCell.get(id) ?? 0)} free on NUMA node ${id}`);
  return `${amountText(type, bytes)} needed, ${freeTexts.join(', ')}`;
}

/** Undefined if the resource has no limited devices. */
function freeDevices(state: KubeletState, resource: string): (readonly number[] | undefined)[] | undefined {
  const pool = state.pools.get(resource);
  if (pool === undefined || pool.endless) return undefined;
  const used = new Set(
    [...state.devices.values()].flatMap((pod) => [...pod.values()].flatMap((ids) => [...(ids.get(resource) ?? [])])),
  );
  return pool.devices.filter(({ id, healthy }) => healthy && !used.has(id)).map(({ nodes }) => nodes);
}

function cellsWith(amounts: ByCell, least: number): number[] {
  return [...amounts].filter(([, amount]) => amount >= least).map(([id]) => id);
}

/** `free by NUMA node: 0: 3, 1: 32`. */
export function freeByCell(amounts: ByCell): string {
  return `free by NUMA node: ${[...amounts].map(([id, amount]) => `${id}: ${amount}`).join(', ')}`;
}
