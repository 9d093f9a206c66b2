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
  return [
    `Measured with ${few.nodes} and ${many.nodes} nodes (${machine}, shared with API server and etcd):`,
    '',
    '| | webhook | extender |',
    '| --- | ---: | ---: |',
    ...(['few', 'many'] as const).flatMap((size) => {
      const { nodes } = extender[size];
      const cells = (field: keyof DaemonCost, shown: (value: number) => string) =>
        [webhook, extender].map((costs) => shown(costs[size].cost[field]));
      return [
        row(`memory with ${nodes} nodes`, ...cells('memory', megabytes)),
        row(`read from the API server at the start, ${nodes} nodes`, ...cells('startBytes', megabytes)),
        row(`heartbeats of ${nodes} agents, share of a core`, ...cells('heartbeatShare', percent)),
        row(`a VM that is created and deleted, ${nodes} names in its filter call`, ...cells('vmSeconds', millis)),
        row(`the same with ${offeredByDefault(nodes)} names, as by default`, ...cells('vmSecondsByDefault', millis)),
        row('the same VM, read from the API server', ...cells('vmBytes', kilobytes)),
      ];
    }),
    '',
    `An agent on a node with 256 CPUs and 60 pods: ${megabytes(agent.memory)}, ${percent(agent.idleShare)} of a core while nothing`,
    `changes, ${agent.requestsASecond.toFixed(2)} calls a second; ${agent.requestsAChange.toFixed(1)} calls and ${millis(agent.secondsAChange)} of processor time for each change.`,
    '',
    `With ${VMS} VMs that are created and ${VMS} that are deleted each second${extrapolated}:`,
    '',
    '| nodes | daemon | memory | share of a core | calls a second | read from the API server |',
    '| ---: | --- | ---: | ---: | ---: | ---: |',
    ...SIZES.flatMap((nodes) => [
      loadRow(nodes, 'webhook, all replicas together', daemonLoad(webhook, nodes, VMS)),
      loadRow(nodes, 'extender, the active replica, all names', daemonLoad(extender, nodes, VMS)),
      loadRow(nodes, 'the same, names as by default', daemonLoad(extender, nodes, VMS, 'vmSecondsByDefault')),
      loadRow(nodes, 'agents: each; calls of all', agentLoad(agent, nodes, VMS)),
    ]),
  ].join('\n');
}

function loadRow(nodes: number, name: string, { memory, share, requests, bytes }: Load): string {
  const cells = [String(nodes), name, megabytes(memory), percent(share), requests.toFixed(0), `${megabytes(bytes)}/s`];
  return `| ${cells.join(' | ')} |`;
}

const row = (...cells: string[]) => `| ${cells.join(' | ')} |`;
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
const kilobytes = (bytes: number) => `${(bytes / 1e3).toFixed(1)} kB`;
const percent = (share: number) => `${(share * 100).toFixed(share < 0.1 ? 2 : 0)} %`;
const millis = (seconds: number) => `${(seconds * 1000).toFixed(2)} ms`;
