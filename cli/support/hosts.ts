import type { NodeTopology, NodeTopologyStatus } from '../../kube/node-topology.ts';
import { PlumblineError } from '../../model/errors.ts';
import { assignmentsOf } from '../../model/kubelet/report.ts';
import { type CpuAssignments, cpusOf } from '../../model/kubelet/state.ts';
import { type PlacementHost, preparedHost, withOwners } from '../../model/placement/needs.ts';

/** A node with a report, prepared for placement. */
export interface ReportedHost {
  readonly name: string;
  readonly status: NodeTopologyStatus;
  /** Prepared at the first access: of nodes that are alike, most commands need only one. */
  readonly host: PlacementHost;
  /** The node without pods: one object for all nodes of the same model. */
  readonly empty: PlacementHost;
  /** Equal for nodes of the same model with the same assigned CPUs, which have the same verdicts. */
  readonly alike: string;
}

export interface Hosts {
  readonly hosts: readonly ReportedHost[];
  /** Reports that contradict themselves or are malformed, each with a description of the fault. */
  readonly unusable: ReadonlyMap<string, string>;
}

/** Checks every report. Nodes of the same model share one description, which is most of the work. */
export function hostsOf(topologies: readonly NodeTopology[]): Hosts {
  const makes = new Map<string, { readonly id: number; readonly empty: PlacementHost }>();
  const hosts: ReportedHost[] = [];
  const unusable = new Map<string, string>();
  for (const { metadata, status, unread } of topologies) {
    const { name = '' } = metadata;
    if (unread !== undefined) unusable.set(name, unread);
    if (status === undefined) continue;
    try {
      const { assignments, conditions: _, pinning: __, refusals: ___, ...lasting } = status;
      const key = JSON.stringify(lasting);
      const make = makes.get(key) ?? { id: makes.size, empty: preparedHost({ ...lasting, assignments: [] }) };
      makes.set(key, make);
      const owners = assignmentsOf(assignments);
      hosts.push(reportedHost(name, status, `${make.id} ${cpusOf(owners)}`, make.empty, owners));
    } catch (error) {
      if (!(error instanceof PlumblineError || error instanceof RangeError)) throw error;
      unusable.set(name, `the report contradicts itself: ${error.message}`);
    }
  }
  return { hosts, unusable };
}

function reportedHost(
  name: string,
  status: NodeTopologyStatus,
  alike: string,
  empty: PlacementHost,
  owners: CpuAssignments,
): ReportedHost {
  let host: PlacementHost | undefined;
  return {
    name,
    status,
    alike,
    empty,
    get host() {
      host ??= owners.size === 0 ? empty : withOwners(empty, owners);
      return host;
    },
  };
}
