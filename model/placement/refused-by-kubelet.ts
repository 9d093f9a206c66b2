import { CpuSet } from '../cpu-set.ts';
import type { Admission } from '../kubelet/admission.ts';
import type { Kubelet } from '../kubelet/kubelet.ts';
import { podCpus } from '../kubelet/pod-request.ts';
import type { KubeletState } from '../kubelet/state.ts';
import { cellsOfNetwork, networkText, type PlacementHost, type PlacementNeeds } from './needs.ts';
import { cellsTouched, cpusOfCells } from './networks.ts';
import { type Refusal, refusal } from './refusal.ts';
import { countText, shortResource } from './shortage.ts';
import { freeCores } from './whole-cores.ts';

type Rejected = Extract<Admission, { admitted: false }>;

/**
 * Converts a kubelet's rejection into a refusal with the resource, its place, the requested and the available amount.
 */
export function refusedByKubelet(
  needs: PlacementNeeds,
  node: PlacementHost,
  kubelet: Kubelet,
  state: KubeletState,
  rejected: Rejected,
): Refusal {
  const threads = node.host.threadsPerCore;
  const wanted = podCpus(needs.request);
  const text = (what: string) => `${what}; the kubelet would answer: ${rejected.message}`;
  if (rejected.reason === 'SMTAlignmentError') {
    const odd = needs.request.containers.find(({ cpus }) => cpus % threads !== 0);
    if (odd) {
      const what = `container ${odd.name} requests ${odd.cpus} CPUs, not a multiple of ${threads} threads per core`;
      return refusal('misaligned', text(what), { resource: 'cpus', wanted: odd.cpus, available: threads });
    }
    const available = freeCores(node, state).length;
    const cores = Math.ceil(wanted / threads);
    const what = `${cores} whole cores are needed and ${available} are free`;
    return refusal('too-few-whole-cores', text(what), { resource: 'cores', wanted: cores, available });
  }
  const free = state.defaultSet.minus(node.reserved).size;
  const counts = { wanted, available: free };
  if (rejected.reason === 'TopologyAffinityError') {
    const refused =
      networkElsewhere(needs, node, state, wanted) ??
      tiedByInit(needs, node, kubelet, state) ??
      noCommonNode(needs, node, kubelet, state);
    return { ...refused, detail: text(refused.detail) };
  }
  if (kubelet.cpu && free < wanted) {
    const what = `${wanted} CPUs are needed and ${free} are free`;
    return refusal('too-few-cpus', text(what), { resource: 'cpus', ...counts });
  }
  const short = shortResource(needs.request, node, kubelet, state) ?? 'the kubelet has too little of a resource';
  return refusal('resources', text(short), { resource: 'other' });
}

/** The required network near which too few CPUs are free. */
function networkElsewhere(
  needs: PlacementNeeds,
  node: PlacementHost,
  state: KubeletState,
  wanted: number,
): Refusal | undefined {
  const free = state.defaultSet.minus(node.reserved);
  for (const need of needs.networks) {
    const cells = need.affinity === 'required' ? cellsOfNetwork(node.networks, need) : undefined;
    if (!cells || cells.isEmpty) continue;
    const available = free.intersect(cpusOfCells(node.host, cells)).size;
    if (available >= wanted) continue;
    const text = `${networkText(need)} is on NUMA node ${cells}, where ${available} of ${wanted} needed CPUs are free`;
    const details = { resource: 'cpus', where: cells.toArray(), wanted, available } as const;
    return refusal('network-elsewhere', text, details);
  }
  return undefined;
}

/**
 * The init container because of which the kubelet rejects the pod. In container scope it gets its CPUs first, and a
 * later container reuses them, so that the kubelet places that container on the same NUMA node.
 */
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
    `init container ${init.name}: it gets ${init.cpus} of the CPUs of NUMA node ${cells.join()}, which container ` +
    `${largest.name} reuses, so all ${largest.cpus} CPUs are needed there; ${free} are free`;
  return refusal('tied-by-init', text, { resource: 'numa', where: cells, ...shortage(largest.cpus, free) });
}

/** The resource for which no NUMA node has enough together with the others. */
function noCommonNode(
  { request }: PlacementNeeds,
  node: PlacementHost,
  kubelet: Kubelet,
  state: KubeletState,
): Refusal {
  const short = shortResource(request, node, kubelet, state);
  if (short !== undefined) return refusal('no-common-node', short, { resource: 'other' });
  const wanted = podCpus(request);
  const free = state.defaultSet.minus(node.reserved);
  const byCell = new Map(node.host.cells.map(({ id, cpus }) => [id, free.intersect(cpus).size]));
  const text = `${wanted} CPUs are needed near each other; ${countText(byCell)}`;
  return refusal('no-common-node', text, { resource: 'numa', ...shortage(wanted, Math.max(0, ...byCell.values())) });
}

/** The amounts of a refusal if there is a shortage; more than enough may be free, and in the wrong places. */
function shortage(wanted: number, available: number): Pick<Refusal, 'wanted' | 'available'> {
  return available < wanted ? { wanted, available } : {};
}
