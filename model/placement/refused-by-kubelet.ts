import { amountText, countText, cpusText, numaNodesText } from '../amounts.ts';
import { CpuSet } from '../cpu-set.ts';
import type { Admission } from '../kubelet/admission.ts';
import { type PodRequest, podCpus, podDevices, podMemory } from '../kubelet/pod-request.ts';
import { freeDevices } from '../kubelet/state.ts';
import { locatedNetworks, networkNeedText, type PlacementNeeds, type PredictedHost } from './needs.ts';
import { cellsTouched, cpusOfCells } from './networks.ts';
import { freeCores, type Refusal, refusal } from './refusal.ts';

type Rejected = Extract<Admission, { admitted: false }>;

type Explanation = (needs: PlacementNeeds, node: PredictedHost) => Refusal;
const EXPLANATIONS: Readonly<Record<Exclude<Rejected['reason'], 'KubeletHangs'>, Explanation>> = {
  SMTAlignmentError: (needs, node) => misaligned(needs, node) ?? tooFewCores(needs, node),
  TopologyAffinityError: (needs, node) =>
    networkElsewhere(needs, node) ?? tiedByInit(needs, node) ?? noCommonNode(needs, node),
  UnexpectedAdmissionError: (needs, node) => tooFewCpus(needs, node) ?? tooLittle(needs, node),
};

/** With the resource, its place, the requested and the available amount. */
export function refusedByKubelet(needs: PlacementNeeds, node: PredictedHost, { reason, message }: Rejected): Refusal {
  if (reason === 'KubeletHangs') return refusal('hangs-kubelet', message);
  const refused = EXPLANATIONS[reason](needs, node);
  return { ...refused, detail: `${refused.detail}; the kubelet would answer: ${message}` };
}

const freeCpus = ({ state, reserved }: PredictedHost): CpuSet => state.defaultSet.minus(reserved);

function tooFewCpus({ request }: PlacementNeeds, node: PredictedHost): Refusal | undefined {
  const [needed, available] = [podCpus(request), freeCpus(node).size];
  if (!node.kubelet.cpu || available >= needed) return undefined;
  return refusal('too-few-cpus', `${cpusText(needed)} needed, ${available} free`, needed - available);
}

function tooLittle({ request }: PlacementNeeds, node: PredictedHost): Refusal {
  return refusal('resources', shortResource(request, node) ?? 'the kubelet has too little of a resource');
}

function misaligned({ request }: PlacementNeeds, { host: { threadsPerCore } }: PredictedHost): Refusal | undefined {
  const odd = request.containers.find(({ cpus }) => cpus % threadsPerCore !== 0);
  if (odd === undefined) return undefined;
  const text = `container ${odd.name} requests ${cpusText(odd.cpus)}, not a multiple of ${threadsPerCore} threads per core`;
  return refusal('misaligned', text);
}

function tooFewCores({ request }: PlacementNeeds, node: PredictedHost): Refusal {
  const threads = node.host.threadsPerCore;
  const available = freeCores(node).length;
  const cores = Math.ceil(podCpus(request) / threads);
  const text = `${countText(cores, 'whole core')} needed, ${available} free`;
  return refusal('too-few-whole-cores', text, (cores - available) * threads);
}

function networkElsewhere(needs: PlacementNeeds, node: PredictedHost): Refusal | undefined {
  const needed = podCpus(needs.request);
  const free = freeCpus(node);
  for (const { need, cells } of locatedNetworks(needs, node)) {
    const available = free.intersect(cpusOfCells(node.host, cells)).size;
    if (available >= needed) continue;
    const text = `${networkNeedText(need)} is on ${numaNodesText(cells)}, where ${available} of ${needed} needed CPUs are free`;
    return refusal('network-elsewhere', text, needed - available);
  }
  return undefined;
}

/** The init container that ties a later one, which reuses its CPUs, to its NUMA node (in container scope). */
function tiedByInit({ request }: PlacementNeeds, node: PredictedHost): Refusal | undefined {
  const { kubelet, state } = node;
  const { containers } = request;
  const lasting = containers.filter(({ kind }) => kind !== 'init');
  const largest = lasting.toSorted((a, b) => b.cpus - a.cpus)[0];
  const init = containers.find(({ kind, cpus }) => kind === 'init' && cpus > 0 && cpus < (largest?.cpus ?? 0));
  if (init === undefined || largest === undefined) return undefined;
  if (!kubelet.admit(state, { ...request, containers: lasting }).admitted) return undefined;
  const first = kubelet.admit(state, { ...request, containers: [init] });
  if (!first.admitted) return undefined;
  const cells = cellsTouched(node.host, first.containers[0]?.cpus ?? CpuSet.EMPTY);
  const free = freeCpus(node).intersect(cpusOfCells(node.host, CpuSet.of(cells))).size;
  const text =
    `init container ${init.name}: it gets ${cpusText(init.cpus)} of ${numaNodesText(cells.join())}, which container ` +
    `${largest.name} reuses, so ${cpusText(largest.cpus)} are needed there; ${free} free`;
  return refusal('tied-by-init', text, largest.cpus - free);
}

function noCommonNode({ request }: PlacementNeeds, node: PredictedHost): Refusal {
  const short = shortResource(request, node);
  if (short !== undefined) return refusal('no-common-node', short);
  const needed = podCpus(request);
  const byCell = freeCpusByCell(node);
  const text = `${cpusText(needed)} needed near each other; ${freeByCell(byCell)}`;
  // More than enough may be free, and in the wrong places.
  return refusal('no-common-node', text, needed - Math.max(0, ...byCell.values()));
}

/** By the id of the NUMA node. */
type ByCell = ReadonlyMap<number, number>;

function freeCpusByCell(node: PredictedHost): ByCell {
  const free = freeCpus(node);
  return new Map(node.host.cells.map(({ id, cpus }) => [id, free.intersect(cpus).size]));
}

/** With its place and amounts; undefined if the CPUs are the reason. */
function shortResource(request: PodRequest, node: PredictedHost): string | undefined {
  const cpus = { free: freeCpusByCell(node), needed: podCpus(request) };
  const devices = [...podDevices(request)].map(
    ([name, count]) => [name, shortDevice(node, name, count, cpus)] as const,
  );
  const memory = [...podMemory(request)].map(([type, bytes]) => [type, shortMemory(node, type, bytes, cpus)] as const);
  const [name, text] = [...devices, ...memory].find(([, text]) => text !== undefined) ?? [];
  return name && `${name}: ${text}`;
}

interface CpuAmounts {
  readonly free: ByCell;
  readonly needed: number;
}

function shortDevice({ kubelet, state }: PredictedHost, resource: string, count: number, { free, needed }: CpuAmounts) {
  const devices = freeDevices(state, resource);
  if (devices === undefined || count === 0) return undefined;
  if (devices.length < count) return `${amountText(resource, count)} needed, ${devices.length} free`;
  if (devices.every(({ nodes = [] }) => nodes.length === 0)) return undefined;
  const countOn = (id: number) => devices.filter(({ nodes }) => nodes?.includes(id)).length;
  const byCell = new Map(kubelet.topology.numaIds.map((id) => [id, countOn(id)]));
  const cells = cellsWith(byCell, count);
  if (cells.length === 0) return `${amountText(resource, count)} needed near each other; ${freeByCell(byCell)}`;
  const most = Math.max(...cells.map((id) => free.get(id) ?? 0));
  if (most >= needed) return undefined;
  const owned = cells.length === 1 ? 'its CPUs are owned' : 'their CPUs are owned';
  const cpus = most === 0 ? owned : `${most} of ${needed} needed CPUs are free there`;
  return `free on ${numaNodesText(cells.join())} only; ${cpus}`;
}

function shortMemory({ kubelet, state }: PredictedHost, type: string, bytes: number, { free, needed }: CpuAmounts) {
  if (state.memory === undefined) return undefined;
  const ofCells = state.memory.cells.map(({ tables }) => tables.get(type)?.free ?? 0);
  const byCell = new Map(kubelet.topology.numaIds.map((id, bit) => [id, ofCells[bit] ?? 0]));
  const total = [...byCell.values()].reduce((sum, amount) => sum + amount, 0);
  if (total < bytes) return `${amountText(type, bytes)} needed, ${amountText(type, total)} free`;
  const cells = cellsWith(free, needed);
  if (cells.length === 0 || cells.some((id) => (byCell.get(id) ?? 0) >= bytes)) return undefined;
  const freeTexts = cells.map((id) => `${amountText(type, byCell.get(id) ?? 0)} free on NUMA node ${id}`);
  return `${amountText(type, bytes)} needed, ${freeTexts.join(', ')}`;
}

function cellsWith(amounts: ByCell, least: number): number[] {
  return [...amounts].filter(([, amount]) => amount >= least).map(([id]) => id);
}

/** `free by NUMA node: 0: 3, 1: 32`. */
function freeByCell(amounts: ByCell): string {
  return `free by NUMA node: ${[...amounts].map(([id, amount]) => `${id}: ${amount}`).join(', ')}`;
}
