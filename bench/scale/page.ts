import type { AgentCost } from './agent.ts';
import type { DaemonCost } from './control-plane.ts';
import { offeredByDefault } from './traffic.ts';

/** Costs for two numbers of nodes. */
interface TwoSizes<Cost> {
  readonly few: { readonly nodes: number; readonly cost: Cost };
  readonly many: { readonly nodes: number; readonly cost: Cost };
}

/** Cost of a daemon in steady operation. */
interface Load {
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
function daemonLoad(
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
function agentLoad(cost: AgentCost, nodes: number, vms: number): Load {
  // The CPUs of a VM are assigned and released: two reports.
  const changes = 2 * vms;
  return {
    memory: cost.memory,
    share: cost.idleShare + (changes / nodes) * cost.secondsAChange,
    bytes: nodes * cost.bytesASecond + changes * cost.bytesAChange,
    requests: nodes * cost.requestsASecond + changes * cost.requestsAChange,
  };
}

const SIZES = [500, 5000, 15_000];
/** VMs per second. */
const VMS = 100;

export interface Measurements {
  readonly agent: AgentCost;
  readonly webhook: TwoSizes<DaemonCost>;
  readonly extender: TwoSizes<DaemonCost>;
  readonly machine: string;
}

/** The measurements and the extrapolated costs, as Markdown. */
export function scalePage({ agent, webhook, extender, machine }: Measurements): string {
  const { few, many } = extender;
  const unmeasured = SIZES.filter((nodes) => nodes !== few.nodes && nodes !== many.nodes);
  const extrapolated = unmeasured.length === 0 ? '' : ` (${unmeasured.join(' and ')} nodes: extrapolated)`;
  const costs = [webhook.few, webhook.many, extender.few, extender.many];
  const cells = (field: keyof DaemonCost, shown: (value: number) => string) =>
    costs.map(({ cost }) => shown(cost[field]));
  const byDefault = [few, many].map(({ nodes }) => offeredByDefault(nodes)).join(' or ');
  return [
    `Measured with ${few.nodes} and ${many.nodes} nodes (${machine}, shared with API server and etcd):`,
    '',
    row('', ...['webhook', 'extender'].flatMap((name) => [few, many].map(({ nodes }) => `${name}, ${nodes} nodes`))),
    `|-|${'-:|'.repeat(costs.length)}`,
    row('memory', ...cells('memory', megabytes)),
    row('read from the API server at the start', ...cells('startBytes', megabytes)),
    row('heartbeats of the agents, share of a core', ...cells('heartbeatShare', percent)),
    row('a VM that is created and deleted, all names in its filter call', ...cells('vmSeconds', millis)),
    row(`the same with ${byDefault} names, as by default`, ...cells('vmSecondsByDefault', millis)),
    row('the same VM, read from the API server', ...cells('vmBytes', kilobytes)),
    '',
    `An agent on a node with 256 CPUs and 60 pods: ${megabytes(agent.memory)}, ${percent(agent.idleShare)} of a core and ${agent.requestsASecond.toFixed(2)} calls a second while`,
    `nothing changes; ${agent.requestsAChange.toFixed(1)} calls and ${millis(agent.secondsAChange)} of processor time for each change.`,
    '',
    `With ${VMS} VMs that are created and ${VMS} that are deleted each second${extrapolated}, as shares of a core. The`,
    'last three columns are those of webhook, extender and all agents:',
    '',
    row(...LOAD_COLUMNS),
    `|${'-:|'.repeat(LOAD_COLUMNS.length)}`,
    ...SIZES.map((nodes) => {
      const byAllNames = daemonLoad(extender, nodes, VMS);
      const names = daemonLoad(extender, nodes, VMS, 'vmSecondsByDefault');
      return loadRow(nodes, [daemonLoad(webhook, nodes, VMS), names, agentLoad(agent, nodes, VMS)], byAllNames);
    }),
  ].join('\n');
}

const LOAD_COLUMNS = [
  'nodes',
  'webhook, all replicas',
  'extender',
  'extender, all names',
  'each agent',
  'memory, MB',
  'calls a second',
  'read, MB/s',
];

function loadRow(nodes: number, loads: readonly [Load, Load, Load], byAllNames: Load): string {
  const [webhook, extender, agents] = loads;
  const three = (shown: (load: Load) => string) => loads.map(shown).join(', ');
  return row(
    String(nodes),
    ...[webhook, extender, byAllNames, agents].map(({ share }) => percent(share)),
    three(({ memory }) => (memory / 1e6).toFixed(0)),
    three(({ requests }) => requests.toFixed(0)),
    three(({ bytes }) => (bytes / 1e6).toFixed(1)),
  );
}

const row = (...cells: string[]) => `| ${cells.join(' | ')} |`;
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
const kilobytes = (bytes: number) => `${(bytes / 1e3).toFixed(1)} kB`;
const percent = (share: number) => `${(share * 100).toFixed(share < 0.1 ? 2 : 0)} %`;
const millis = (seconds: number) => `${(seconds * 1000).toFixed(2)} ms`;
