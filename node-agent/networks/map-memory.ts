import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { MAX_CELL_ID } from '../../model/host.ts';
import { isObject } from '../../model/json.ts';
import { type NetworkMap, networkMapFor } from '../../model/networks/network-map.ts';
import type { NodeNetworks } from '../../model/networks/reach.ts';
import { parseSaved } from '../files/bounded-file.ts';
import { type OnFileProblem, StateFile } from '../files/state-file.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

export interface MapInUse {
  /** The override of the discovered networks; undefined if there is none. */
  readonly override: NodeNetworks | undefined;
  readonly fault: { readonly reason: 'InvalidMap' | 'NodeUnknown'; readonly message: string } | undefined;
  /** Whether the override comes from the last good map instead of the current one. */
  readonly isLastGood: boolean;
}

export interface MapSources {
  /** Undefined if no map is configured. */
  readonly map: NetworkMap | Error | undefined;
  /** Undefined if the map selects nodes by labels and the node's labels are unknown. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  readonly cells: CpuSet;
}

/** What the operator's map said about this node. */
interface LastMap {
  /** Undefined: no entry selects the node. */
  readonly networks: NodeNetworks | undefined;
}

/** Bytes; a map has at most a MiB, and this is one node's part of it. */
const MAX_SAVED_BYTES = 1024 * 1024;

/**
 * The last good map: a faulty one changes nothing. Owner: the operator's last valid map; it survives the agent, because agents
 * restart more often than people repair maps. Age: any. End: the next valid map; one that names a NUMA node that this host
 * lacks is not used.
 */
export class MapMemory {
  readonly #file: StateFile<LastMap>;

  constructor(path: string, log: AgentLogger, onProblem?: OnFileProblem) {
    const text = { format: lastMapText, parse: parseLastMap };
    this.#file = new StateFile({ path, maxBytes: MAX_SAVED_BYTES, ...text, log, onProblem });
  }

  /** Call it at the start of each run of the duty. */
  load(signal: AbortSignal): void {
    this.#file.load(signal);
  }

  /** The map to use instead of what the sources contain, where that is faulty. */
  use({ map, labels, cells }: MapSources): MapInUse {
    if (map === undefined) return { override: undefined, fault: undefined, isLastGood: false };
    if (map instanceof Error) return this.#useLast(cells, 'InvalidMap', map.message);
    if (labels === undefined) {
      const unknown = 'the network map selects nodes by labels, which are unknown until the Node is read';
      return this.#useLast(cells, 'NodeUnknown', unknown);
    }
    try {
      const networks = networkMapFor(map, labels, cells);
      this.#file.set({ networks });
      return { override: networks, fault: undefined, isLastGood: false };
    } catch (error) {
      return this.#useLast(cells, 'InvalidMap', (error as Error).message);
    }
  }

  #useLast(cells: CpuSet, reason: 'InvalidMap' | 'NodeUnknown', message: string): MapInUse {
    const last = this.#file.value;
    const networks = last?.networks;
    const located = networks === undefined ? [] : [...networks.physnets.values(), networks.tunnel ?? CpuSet.EMPTY];
    const isLastGood = last !== undefined && located.every((network) => network.isSubsetOf(cells));
    return { override: isLastGood ? networks : undefined, fault: { reason, message }, isLastGood };
  }
}

const cellList = z.string().transform((text) => CpuSet.parse(text, MAX_CELL_ID));
/** A zod record would drop a physnet with the name `__proto__`. */
const byPhysnet = z.preprocess(
  (value) => (isObject(value) ? new Map(Object.entries(value)) : value),
  z.map(z.string(), cellList),
);
const savedMap = z.object({
  networks: z.object({ physnets: byPhysnet, tunnel: cellList.optional() }).optional(),
});

function parseLastMap(text: string): LastMap {
  const { networks } = parseSaved(text, savedMap);
  return { networks: networks && { physnets: networks.physnets, tunnel: networks.tunnel } };
}

function lastMapText({ networks }: LastMap): string {
  const written = networks && {
    physnets: Object.fromEntries([...networks.physnets].map(([name, cells]) => [name, cells.toString()])),
    ...(networks.tunnel && { tunnel: networks.tunnel.toString() }),
  };
  return JSON.stringify({ networks: written });
}
