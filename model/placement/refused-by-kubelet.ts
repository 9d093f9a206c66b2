import type { Admission } from '../kubelet/admission.ts';
import type { Kubelet } from '../kubelet/kubelet.ts';
import { podCpus } from '../kubelet/pod-request.ts';
import type { KubeletState } from '../kubelet/state.ts';
import { cellsOfNetwork, networkText, type PlacementHost, type PlacementNeeds } from './needs.ts';
import { cpusOfCells } from './networks.ts';
import { type Refusal, refusal } from './refusal.ts';
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
  if (rejected.reason === 'TopologyAffinityError') return noCommonNode(needs, node, state, rejected, wanted);
  if (kubelet.cpu && free < wanted) {
    const what = `${wanted} CPUs are needed and ${free} are free`;
    return refusal('too-few-cpus', text(what), { resource: 'cpus', ...counts });
  }
  return refusal('resources', text('the kubelet has too little of a resource'), { resource: 'other' });
}

/** Whether no NUMA node suits a network, or no NUMA node has enough CPUs. */
function noCommonNode(
  needs: PlacementNeeds,
  node: PlacementHost,
  state: KubeletState,
  rejected: Rejected,
  wanted: number,
): Refusal {
  const free = state.defaultSet.minus(node.reserved);
  for (const need of needs.networks) {
    const cells = need.affinity === 'required' ? cellsOfNetwork(node.networks, need) : undefined;
    if (!cells || cells.isEmpty) continue;
    const available = free.intersect(cpusOfCells(node.host, cells)).size;
    if (available >= wanted) continue;
    const text =
      `${networkText(need)} is on NUMA node ${cells}, where ${available} of ${wanted} needed CPUs are free; ` +
      `the kubelet would answer: ${rejected.message}`;
    const details = { resource: 'cpus', where: cells.toArray(), wanted, available } as const;
    return refusal('network-elsewhere', text, details);
  }
  const byCell = node.host.cells.map(({ id, cpus }) => ({ id, free: free.intersect(cpus).size }));
  const most = Math.max(0, ...byCell.map((cell) => cell.free));
  const text =
    `${wanted} CPUs are needed near each other; free by NUMA node: ` +
    `${byCell.map((cell) => `${cell.id}: ${cell.free}`).join(', ')}; the kubelet would answer: ${rejected.message}`;
  return refusal('no-common-node', text, { resource: 'numa', wanted, available: most });
}
