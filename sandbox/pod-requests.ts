import { parseQuantity } from '../model/quantity.ts';
import type { Container, KubeNode, KubePod } from './objects.ts';

/** Amounts by resource, in billionths, so that sums are exact. */
export type Amounts = ReadonlyMap<string, bigint>;

export function amountsOf(list: Readonly<Record<string, string>> | undefined): Amounts {
  return new Map(Object.entries(list ?? {}).map(([name, text]) => [name, parseQuantity(String(text)).nano]));
}

export function plus(a: Amounts, b: Amounts): Amounts {
  const sum = new Map(a);
  for (const [name, amount] of b) sum.set(name, (sum.get(name) ?? 0n) + amount);
  return sum;
}

function largest(a: Amounts, b: Amounts): Amounts {
  const most = new Map(a);
  for (const [name, amount] of b) if (amount > (most.get(name) ?? 0n)) most.set(name, amount);
  return most;
}

const requestsOf = ({ resources }: Container) => amountsOf(resources?.requests);

/** What a pod needs on its node. Source: component-helpers/resource/helpers.go, PodRequests. */
export function podRequests({ spec }: KubePod): Amounts {
  let running: Amounts = new Map();
  for (const container of spec.containers) running = plus(running, requestsOf(container));
  let sidecars: Amounts = new Map();
  let starting: Amounts = new Map();
  for (const container of spec.initContainers ?? []) {
    const beside = plus(sidecars, requestsOf(container));
    if (container.restartPolicy === 'Always') sidecars = beside;
    starting = largest(starting, beside);
  }
  const containerTotal = largest(plus(running, sidecars), starting);
  const podLevel = amountsOf(spec.resources?.requests);
  return plus(new Map([...containerTotal, ...podLevel]), amountsOf(spec.overhead));
}

interface Shortage {
  /** The pod's status.reason: `OutOfcpu`. */
  readonly reason: string;
  readonly message: string;
}

/** The kubelet's own check. Source: pkg/kubelet/lifecycle/predicate.go. @param devices what the pod's containers got */
export function shortage(
  pod: KubePod,
  others: Iterable<KubePod>,
  node: KubeNode | undefined,
  devices: ReadonlyMap<string, ReadonlyMap<string, unknown>> | undefined,
): Shortage | undefined {
  const allocatable = amountsOf(node?.status?.allocatable);
  const allocated = new Set([...(devices?.values() ?? [])].flatMap((resources) => [...resources.keys()]));
  let used: Amounts = new Map();
  for (const other of others) used = plus(used, podRequests(other));
  for (const [name, requested] of podRequests(pod)) {
    const total = allocatable.get(name);
    const inUse = used.get(name) ?? 0n;
    if (
      requested === 0n ||
      allocated.has(name) ||
      (total === undefined && name.includes('/')) ||
      inUse + requested <= (total ?? 0n)
    )
      continue;
    const amountText = (amount: bigint) => String(name === 'cpu' ? amount / 1_000_000n : amount / 1_000_000_000n);
    return {
      reason: `OutOf${name}`,
      message: `Node didn't have enough resource: ${name}, requested: ${amountText(requested)}, used: ${amountText(inUse)}, capacity: ${amountText(total ?? 0n)}`,
    };
  }
  return undefined;
}
