import { NodeShapes } from '../kube/cluster-view/node-topologies.ts';
import { cpuOwners, type NodeTopology, type NodeTopologyStatus } from '../kube/node-topology.ts';
import { CpuSet } from '../model/cpu-set.ts';
import { PlumblineError } from '../model/errors.ts';
import { assignmentsOf } from '../model/kubelet/report.ts';
import { cpusOf } from '../model/kubelet/state.ts';
import { usageOf } from '../model/kubelet/usage.ts';
import { groupBy } from '../model/lists.ts';
import { type PlacementHost, preparedHost, withOwners } from '../model/placement/needs.ts';

export interface ReportedHost {
  readonly name: string;
  readonly status: NodeTopologyStatus;
  /** Prepared at the first access: of nodes that are alike, most commands need only one. */
  readonly host: PlacementHost;
  /** The node without pods: one object for all nodes of the same model. */
  readonly empty: PlacementHost;
  /** Equal for nodes of the same model with the same assigned resources, which have the same verdicts. */
  readonly alike: string;
}

export type Hosts = ReturnType<typeof hostsOf>;

/** Checks every report. Nodes of the same model share one description, which is most of the work. */
export function hostsOf(topologies: readonly NodeTopology[]) {
  const shapes = new NodeShapes((withoutPods) => ({ empty: preparedHost(withoutPods) }));
  const hosts: ReportedHost[] = [];
  /** Reports that contradict themselves or are malformed, each with a description of the fault. */
  const unusable = new Map<string, string>();
  for (const { metadata, status, unread } of topologies) {
    const { name = '' } = metadata;
    if (unread !== undefined) unusable.set(name, unread);
    if (status === undefined) continue;
    try {
      const { id, empty } = shapes.take(status);
      const owners = assignmentsOf(cpuOwners(status));
      const usage = usageOf(status);
      const host = () => (owners.size === 0 && usage === '' ? empty : withOwners(empty, owners, usage));
      hosts.push(reportedHost({ name, status, alike: `${id}${usage} ${cpusOf(owners)}`, empty }, host));
    } catch (error) {
      if (!(error instanceof PlumblineError || error instanceof RangeError)) throw error;
      unusable.set(name, `the report contradicts itself: ${error.message}`);
    }
  }
  return { hosts, unusable };
}

function reportedHost(node: Omit<ReportedHost, 'host'>, prepare: () => PlacementHost): ReportedHost {
  let host: PlacementHost | undefined;
  return {
    ...node,
    get host() {
      host ??= prepare();
      return host;
    },
  };
}

/** Why the agent of a node does not use its network map; undefined if it does. */
export function networkMapFault({ conditions = [] }: Pick<NodeTopologyStatus, 'conditions'>): string | undefined {
  return conditions.find(({ type, status }) => type === 'NetworkMapValid' && status === 'False')?.message;
}

export function freeCpus({ host, reserved, owned, polled }: PlacementHost): CpuSet {
  return host.online.minus(reserved).minus(owned).minus(polled);
}

export function networksOn({ physnets, tunnel }: PlacementHost['networks'], cell: number): string[] {
  const names = [...physnets].filter(([, cells]) => cells.has(cell)).map(([name]) => name);
  return [...names, ...(tunnel?.has(cell) ? ['tunnel'] : [])];
}

/** A has the lowest CPU, more pods repeat letters. R and P stand for reserved and polled CPUs. */
export const OWNER_LETTERS = 'ABCDEFGHIJKLMNOQSTUVWXYZabcdefghijklmnoqrstuvwxyz';

/** @param index of the pod in `ownersByCpu` */
export const ownerLetter = (index: number): string => OWNER_LETTERS[index % OWNER_LETTERS.length]!;

/** The entries of each pod, the pod with the lowest CPU first. */
export function ownersByCpu<Owner extends { readonly podUID: string; readonly cpus: string }>(
  owners: readonly Owner[],
): Owner[][] {
  const lowest = new Map(owners.map((owner) => [owner, CpuSet.parse(owner.cpus).first ?? 0]));
  const lowestOf = (pod: readonly Owner[]) => Math.min(...pod.map((owner) => lowest.get(owner)!));
  return [...groupBy(owners, ({ podUID }) => podUID).values()].sort((a, b) => lowestOf(a) - lowestOf(b));
}
