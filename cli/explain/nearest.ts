import type { Asks } from '../../diagnosis/asks.ts';
import { freeCpus, networksOn } from '../../diagnosis/hosts.ts';
import type { KubeClient } from '../../kube/client.ts';
import { countText, cpusText } from '../../model/amounts.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { cellsOfNetwork, type PlacementHost } from '../../model/placement/needs.ts';
import { drawCpuMap } from '../support/cpu-map.ts';
import { readHost } from '../support/lists.ts';
import { joinParts, type Line, paint, wrap } from '../support/terminal.ts';
import type { Explanation } from './explain.ts';

/** The node with the smallest shortage of CPUs or cores, in its current state. */
interface Nearest {
  readonly node: string;
  readonly host: PlacementHost;
  readonly asks: Pick<Asks, 'cpus' | 'wholeCores' | 'networks'>;
}

/** Undefined if a node accepts the pod, none lacks CPUs or cores, or the report is invalid. @throws KubeError */
export async function readNearest(
  client: Pick<KubeClient, 'get'>,
  { nodes, asks }: Pick<Explanation, 'nodes' | 'asks'>,
): Promise<Nearest | undefined> {
  const short = nodes.filter(({ kind, missing }) => kind !== 'fits' && missing !== undefined);
  const [first] = short.sort((a, b) => (a.missing ?? 0) - (b.missing ?? 0));
  const node = first?.nodes[0];
  if (first === undefined || node === undefined || asks === undefined || nodes.some(({ kind }) => kind === 'fits')) {
    return undefined;
  }
  const host = (await readHost(client, node))?.host;
  return host && { node, host, asks };
}

export function nearestLines({ node, host: placement, asks }: Nearest, columns: number): Line[] {
  const { host, reserved, owned, polled, networks } = placement;
  const width = Math.min(columns, 120);
  const free = freeCpus(placement);
  const split = asks.wholeCores
    ? CpuSet.of([...free].filter((cpu) => !host.cores.some((core) => core.has(cpu) && core.isSubsetOf(free))))
    : CpuSet.EMPTY;
  const near = nearCpus(placement, asks);
  const usable = free.minus(split).intersect(near);
  const required = asks.networks.filter(({ affinity }) => affinity === 'required');
  const where = required.length === 0 ? '' : ` near ${required.map(({ kind, physnet }) => physnet ?? kind).join(', ')}`;
  const cores = host.cores.filter((core) => core.isSubsetOf(usable)).length;
  const sum = asks.wholeCores
    ? `${countText(cores, 'whole core')} free${where}, ${cpusText(usable.size)}; it needs ${asks.cpus}`
    : `${cpusText(usable.size)} free${where}; it needs ${asks.cpus}`;
  const labels = host.cells.map(({ id }) => [id, networksOn(networks, id).join(', ')] as const);
  const cellLabels = new Map(labels.filter(([, text]) => text));
  return [
    '',
    [paint('bold', `The closest node: ${node}`)],
    ...wrap(sum, Math.max(40, width), '  '),
    ...drawCpuMap({
      host,
      cellLabels,
      width,
      owners: [
        { mark: 'R', label: 'reserved', cpus: reserved, style: 'dim' },
        { mark: 'P', label: 'Open vSwitch polls', cpus: polled, style: 'red' },
        { mark: '#', label: 'owned', cpus: owned, style: 'cyan' },
        { mark: '+', label: 'could serve', cpus: usable, style: 'green' },
        { mark: '-', label: 'free, but only half a core', cpus: split, style: 'yellow' },
      ],
    }).map((line) => joinParts(['  ', line])),
  ];
}

function nearCpus({ host, networks }: PlacementHost, asks: Nearest['asks']): CpuSet {
  let near = host.online;
  for (const { kind, physnet, affinity } of asks.networks) {
    if (affinity !== 'required') continue;
    const cells = cellsOfNetwork(networks, { name: '', kind, physnet, affinity }) ?? CpuSet.EMPTY;
    near = host.cells.filter(({ id }) => !cells.has(id)).reduce((rest, { cpus }) => rest.minus(cpus), near);
  }
  return near;
}
