import type { Node, Pod } from '../objects.ts';
import { podRequests } from '../pod-requests.ts';
import type { Extender } from './extender.ts';
import { filterNode, type Load, leastAllocated, type Misfit } from './node-filters.ts';

/** Input of the scheduler's decision about one pod. */
export interface Snapshot {
  readonly nodes: readonly Node[];
  loadOf(nodeName: string): Load;
}

export type Decision = { readonly node: string } | { readonly misfits: ReadonlyMap<string, Misfit> };

/**
 * Chooses a node: in-tree filters, then each interested extender for the remaining nodes, then scores. Of equal scores
 * the first name wins (the real scheduler chooses at random).
 * @param ignored resources that extenders account for instead of the scheduler, or that do not count
 * @throws ExtenderError if an extender that is not ignorable fails
 */
export async function decide(
  pod: Pod,
  { nodes, loadOf }: Snapshot,
  extenders: readonly Extender[],
  ignored: ReadonlySet<string>,
): Promise<Decision> {
  const wanted = podRequests(pod);
  const misfits = new Map<string, Misfit>();
  let feasible = nodes.filter((node) => {
    const misfit = filterNode(pod, wanted, node, loadOf(node.metadata.name), ignored);
    if (misfit) misfits.set(node.metadata.name, misfit);
    return misfit === undefined;
  });
  const interested = extenders.filter((extender) => extender.isInterested(pod));
  for (const extender of interested) {
    if (feasible.length === 0) break;
    if (extender.filters) feasible = await filterBy(extender, pod, feasible, misfits);
  }
  const [only] = feasible;
  if (only === undefined) return { misfits };
  if (feasible.length === 1) return { node: only.metadata.name };

  const scores = new Map(
    feasible.map((node) => [node.metadata.name, leastAllocated(wanted, node, loadOf(node.metadata.name))]),
  );
  await Promise.all(interested.map((extender) => addScores(extender, pod, feasible, scores)));
  const [best] = [...scores].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  return { node: best![0] };
}

async function filterBy(extender: Extender, pod: Pod, nodes: Node[], misfits: Map<string, Misfit>): Promise<Node[]> {
  try {
    const { names, failed, unresolvable } = await extender.filter(pod, nodes);
    for (const [name, reason] of failed) misfits.set(name, { reasons: [reason], unresolvable: false });
    for (const [name, reason] of unresolvable) misfits.set(name, { reasons: [reason], unresolvable: true });
    const kept = new Set(names);
    return nodes.filter(({ metadata }) => kept.has(metadata.name));
  } catch (error) {
    // If an ignorable extender fails, all nodes pass.
    if (extender.ignorable) return nodes;
    throw error;
  }
}

/** Adds the extenders' scores. A failed prioritize call only loses its scores. */
async function addScores(
  extender: Extender,
  pod: Pod,
  nodes: readonly Node[],
  scores: Map<string, number>,
): Promise<void> {
  const given = await extender.prioritize(pod, nodes).catch(() => new Map<string, number>());
  for (const [name, score] of given) {
    const sum = scores.get(name);
    if (sum !== undefined) scores.set(name, sum + score);
  }
}
