import type { AgentCost } from './agent.ts';
import type { DaemonCost } from './control-plane.ts';
import { agentLoad, daemonLoad, type Load, type TwoSizes } from './extrapolate.ts';
import { offeredByDefault } from './scheduling.ts';

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
