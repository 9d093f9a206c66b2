import type { CpuSet } from '../cpu-set.ts';
import { wholeCoresWithin } from '../host.ts';
import { lastingCpus, podCpus } from '../kubelet/pod-request.ts';
import { cellsOfNetwork, keepsWholeCores, networkText, type PlacementHost, type PlacementNeeds } from './needs.ts';
import { cpusOfCells } from './networks.ts';
import { type Refusal, refusal } from './refusal.ts';

/**
 * Checks a node whose kubelet cannot be predicted only by counting: whether there are too few CPUs, on the node or near
 * a required network. Passing is not a promise. CPUs of pods in flight are subtracted from the node's free CPUs,
 * whatever NUMA nodes they will be on.
 *
 * @param assumed pods in flight on the node, which its report does not contain yet
 */
export function countCheck(
  needs: PlacementNeeds,
  node: PlacementHost,
  assumed: readonly PlacementNeeds[] = [],
): Refusal | undefined {
  const wanted = podCpus(needs.request);
  if (wanted === 0) return undefined;
  const free = node.host.online.minus(node.reserved).minus(node.owned).minus(node.polled);
  const taken = assumed
    .filter(({ request }) => !node.shown.has(request.uid) && request.uid !== needs.request.uid)
    .reduce((sum, { request }) => sum + podCpus(request), 0);
  const wholeCores = keepsWholeCores(needs, node) || node.wholeCoresOnly;
  const countIn = (cpus: CpuSet) => (wholeCores ? wholeCoresWithin(node.host, cpus) : cpus).size;

  const available = countIn(free) - taken;
  if (available < wanted) {
    const text = `${wanted} CPUs are needed and at most ${Math.max(0, available)} are free`;
    const reason = wholeCores ? 'too-few-whole-cores' : 'too-few-cpus';
    return refusal(reason, text, { resource: 'cpus', wanted, available: Math.max(0, available) });
  }
  const lasting = lastingCpus(needs.request);
  for (const need of needs.spansCells ? [] : needs.networks) {
    const cells = need.affinity === 'required' ? cellsOfNetwork(node.networks, need) : undefined;
    if (!cells || cells.isEmpty) continue;
    const near = countIn(free.intersect(cpusOfCells(node.host, cells)));
    if (near >= lasting) continue;
    const text = `${networkText(need)} is on NUMA node ${cells}, where at most ${near} of ${lasting} needed CPUs are free`;
    const details = { resource: 'cpus', where: cells.toArray(), wanted: lasting, available: near } as const;
    return refusal('network-elsewhere', text, details);
  }
  return undefined;
}
