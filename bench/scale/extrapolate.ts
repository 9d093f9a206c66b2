import type { AgentCost } from './agent.ts';
import type { DaemonCost } from './control-plane.ts';

/** Costs for two numbers of nodes. */
export interface TwoSizes<Cost> {
  readonly few: { readonly nodes: number; readonly cost: Cost };
  readonly many: { readonly nodes: number; readonly cost: Cost };
}

/** Cost of a daemon in steady operation. */
export interface Load {
  /** Bytes. */
  readonly memory: number;
  /** Share of one core. */
  readonly share: number;
  /** Bytes per second from the API server. */
  readonly bytes: number;
  /** Calls per second to the API server, without watches. */
  readonly requests: number;
}

/**
 * What was measured at one of both sizes; for other sizes, the straight line through both, never below 0. A cost that
 * decreases between them is noise: it counts with the higher value.
 */
function at<Cost>({ few, many }: TwoSizes<Cost>, nodes: number, field: keyof Cost & string): number {
  const [first, second] = [Number(few.cost[field]), Number(many.cost[field])];
  if (nodes === few.nodes) return first;
  if (nodes === many.nodes) return second;
  const slope = Math.max(0, (second - first) / (many.nodes - few.nodes));
  return Math.max(0, Math.max(first, second) + slope * (nodes - (second >= first ? many.nodes : few.nodes)));
}

/**
 * Cost of a daemon.
 *
 * @param vms VMs that are created, and as many that are deleted, each second
 * @param aVm which of the measured costs of a VM counts
 */
export function daemonLoad(
  costs: TwoSizes<DaemonCost>,
  nodes: number,
  vms: number,
  aVm: 'vmSeconds' | 'vmSecondsByDefault' = 'vmSeconds',
): Load {
  return {
    memory: at(costs, nodes, 'memory'),
    share: at(costs, nodes, 'heartbeatShare') + vms * at(costs, nodes, aVm),
    bytes: at(costs, nodes, 'heartbeatBytes') + vms * at(costs, nodes, 'vmBytes'),
    requests: vms * at(costs, nodes, 'vmRequests'),
  };
}

/** Cost of all agents together; share and memory are those of one agent. */
export function agentLoad(cost: AgentCost, nodes: number, vms: number): Load {
  // The CPUs of a VM are assigned and released: two reports.
  const changes = 2 * vms;
  return {
    memory: cost.memory,
    share: cost.idleShare + (changes / nodes) * cost.secondsAChange,
    bytes: nodes * cost.bytesASecond + changes * cost.bytesAChange,
    requests: nodes * cost.requestsASecond + changes * cost.requestsAChange,
  };
}
