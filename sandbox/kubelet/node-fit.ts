import type { Node, Pod } from '../objects.ts';
import { type Amounts, amountsOf, plus, podRequests } from '../pod-requests.ts';

/** The first resource that a node has too little of for another pod. */
export interface Shortage {
  /** The pod's status.reason: `OutOfcpu`. */
  readonly reason: string;
  readonly message: string;
}

/**
 * The kubelet's own check of the scheduler's conditions, after the resource managers. Like the kubelet it ignores
 * extended resources that the node does not have.
 * @param devices the devices that the pod's containers got, by resource: there were enough of these, whatever the Node
 * has now
 * Source: pkg/kubelet/lifecycle/predicate.go.
 */
export function shortage(
  pod: Pod,
  others: Iterable<Pod>,
  node: Node | undefined,
  devices: ReadonlyMap<string, ReadonlyMap<string, unknown>> | undefined,
): Shortage | undefined {
  const allocatable = amountsOf(node?.status?.allocatable);
  const allocated = new Set([...(devices?.values() ?? [])].flatMap((resources) => [...resources.keys()]));
  let used: Amounts = new Map();
  for (const other of others) used = plus(used, podRequests(other));
  for (const [name, wanted] of podRequests(pod)) {
    const total = allocatable.get(name);
    const taken = used.get(name) ?? 0n;
    if (
      wanted === 0n ||
      allocated.has(name) ||
      (total === undefined && name.includes('/')) ||
      taken + wanted <= (total ?? 0n)
    )
      continue;
    const shown = (amount: bigint) => String(name === 'cpu' ? amount / 1_000_000n : amount / 1_000_000_000n);
    return {
      reason: `OutOf${name}`,
      message: `Node didn't have enough resource: ${name}, requested: ${shown(wanted)}, used: ${shown(taken)}, capacity: ${shown(total ?? 0n)}`,
    };
  }
  return undefined;
}
