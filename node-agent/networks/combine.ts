import { CpuSet } from '../../model/cpu-set.ts';
import { cut, few } from '../../model/errors.ts';
import type { Host } from '../../model/host.ts';
import { physnetResource } from '../../model/names.ts';
import { type Drift, overlayNetworkMap } from '../../model/networks/network-map.ts';
import type { NodeNetworks } from '../../model/networks/reach.ts';
import { type DiscoveredNetworks, type NetworkName, networkText } from './locate.ts';
import type { MapInUse } from './node-map.ts';

const NO_NETWORKS: NodeNetworks = { physnets: new Map(), tunnel: undefined };

export interface NetworksView {
  readonly networks: NodeNetworks;
  /** Networks with uplinks of which none has a carrier. */
  readonly down: ReadonlySet<NetworkName>;
  /** CPUs that poll mode drivers are configured to use. */
  readonly pmdCpus: CpuSet;
  /** Why the view is incomplete. A faulty map without an earlier good one makes the node unfit: no networks. */
  readonly problems: readonly { readonly reason: NetworksProblem; readonly message: string }[];
  /** The fault of the network map, and whether the last good map is used instead. */
  readonly mapFault: string | undefined;
  /** Where the map and the discovered networks differ. */
  readonly drift: readonly string[];
  /** Polled networks on NUMA nodes without a polling thread. */
  readonly unpolled: readonly string[];
}

/** Physnets that a node can report: each is a resource of the kubelet with its own socket. */
export const MAX_REPORTED_PHYSNETS = 256;
/** Maximum texts of one kind in a view, and characters of each: they contain names from the switch and the map. */
const MAX_TEXTS = 32;
const MAX_TEXT_CHARACTERS = 400;

export type NetworksProblem =
  | 'TooMany'
  | 'InvalidMap'
  | 'SwitchUnreachable'
  | 'NodeUnknown'
  | 'NotFound'
  | 'InvalidName';

export const UNKNOWN_NETWORKS: NetworksView = {
  networks: NO_NETWORKS,
  down: new Set(),
  pmdCpus: CpuSet.EMPTY,
  problems: [{ reason: 'SwitchUnreachable', message: 'Open vSwitch was not read yet' }],
  mapFault: undefined,
  drift: [],
  unpolled: [],
};

interface NetworkSources {
  readonly host: Host;
  readonly map: MapInUse;
  /** The last discovery; undefined where there is no switch, or the agent has never reached it. */
  readonly discovered: DiscoveredNetworks | undefined;
  readonly pmdCpus: CpuSet;
  /** The unreadable parts of the switch's configuration. */
  readonly switchFaults: readonly string[];
  readonly switchProblem: string | undefined;
}

/** Combines the operator's map with the discovered networks, and lists what is missing or differs. */
export function combineNetworks(sources: NetworkSources): NetworksView {
  const { host, map, discovered, pmdCpus, switchFaults, switchProblem } = sources;
  const { override, fault, isLastGood } = map;
  const problems: NetworksView['problems'][number][] = [];
  const then = isLastGood ? 'the last good map stays in use' : 'there is no earlier map, so no network is reported';
  const mapFault = fault?.reason === 'InvalidMap' ? `${cut(fault.message, MAX_TEXT_CHARACTERS)}; ${then}` : undefined;
  // Without the map it is unknown which of the discovered networks to override.
  if (fault !== undefined && !isLastGood) {
    return { ...UNKNOWN_NETWORKS, pmdCpus, problems: fewProblems([fault]), mapFault };
  }
  if (fault?.reason === 'NodeUnknown') {
    problems.push({ reason: fault.reason, message: `${fault.message}; ${then}` });
  }
  // With a map for this node, a missing switch is not a problem.
  if (switchProblem !== undefined && (override === undefined || discovered !== undefined)) {
    const consequence =
      discovered === undefined ? 'and there is no network map for this node' : 'keeping what was last known';
    problems.push({ reason: 'SwitchUnreachable', message: `${switchProblem}; ${consequence}` });
  }
  const { networks, drift } = overlayNetworkMap(discovered?.networks ?? NO_NETWORKS, override);
  const usable = withResourceNames(networks, problems);
  for (const message of switchFaults) problems.push({ reason: 'NotFound', message });
  for (const { network, text } of discovered?.doubts ?? []) {
    if (!isMapped(override, network)) problems.push({ reason: 'NotFound', message: text });
  }
  return {
    networks: usable,
    down: discovered?.down ?? new Set(),
    pmdCpus,
    problems: fewProblems(problems),
    mapFault,
    drift: discovered === undefined ? [] : few(drift.map(describeDrift), MAX_TEXTS, MAX_TEXT_CHARACTERS),
    unpolled: few(unpolledNetworks(usable, discovered?.polled ?? [], pmdCpus, host), MAX_TEXTS, MAX_TEXT_CHARACTERS),
  };
}

function fewProblems(problems: NetworksView['problems']): NetworksView['problems'] {
  const messages = problems.map(({ message }) => message);
  return few(messages, MAX_TEXTS, MAX_TEXT_CHARACTERS).map((message, i) => {
    // The last one, with the number of the others, has the reason of the first.
    return { reason: problems[i < MAX_TEXTS ? i : 0]!.reason, message };
  });
}

function isMapped(map: NodeNetworks | undefined, network: NetworkName): boolean {
  return network === undefined ? map?.tunnel !== undefined : map?.physnets.has(network) === true;
}

/** Removes a physnet whose name does not fit a resource, since no pod can request it, and physnets beyond the limit. */
function withResourceNames(networks: NodeNetworks, problems: NetworksView['problems'][number][]): NodeNetworks {
  const physnets = new Map<string, CpuSet>();
  const leftOut: string[] = [];
  for (const [name, cells] of networks.physnets) {
    try {
      physnetResource(name);
      if (physnets.size < MAX_REPORTED_PHYSNETS) physnets.set(name, cells);
      else leftOut.push(name);
    } catch (error) {
      problems.push({ reason: 'InvalidName', message: (error as Error).message });
    }
  }
  if (leftOut.length > 0) {
    const names = few(leftOut, 3, 63).join(', ');
    const message = `${leftOut.length} physnets exceed the ${MAX_REPORTED_PHYSNETS} of a report; ignored: ${names}`;
    problems.unshift({ reason: 'TooMany', message });
  }
  return { physnets, tunnel: networks.tunnel };
}

function describeDrift({ physnet, mapped, discovered }: Drift): string {
  const cellsText = (cells: CpuSet) => (cells.isEmpty ? 'no NUMA node in particular' : `NUMA node ${cells}`);
  const there = discovered === undefined ? 'was not found here' : `was found on ${cellsText(discovered)}`;
  return `${networkText(physnet)}: the map says ${cellsText(mapped)}, it ${there}`;
}

/** Polled networks on a NUMA node without a polling CPU: their packets cross NUMA nodes, wherever the VM's CPUs are. */
function unpolledNetworks(
  { physnets, tunnel }: NodeNetworks,
  polled: Iterable<NetworkName>,
  pmdCpus: CpuSet,
  host: Host,
): string[] {
  // Without a mask the switch chooses the CPUs.
  if (pmdCpus.isEmpty) return [];
  return [...polled].flatMap((network) => {
    const cells = (network === undefined ? tunnel : physnets.get(network)) ?? CpuSet.EMPTY;
    const bare = host.cells.filter(({ id, cpus }) => cells.has(id) && !cpus.intersects(pmdCpus)).map(({ id }) => id);
    if (bare.length === 0) return [];
    return `${networkText(network)} is on NUMA node ${bare.join(', ')}, where no CPU of pmd-cpu-mask (${pmdCpus}) is`;
  });
}
