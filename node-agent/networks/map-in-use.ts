import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { MAX_CELL_ID } from '../../model/host.ts';
import type { NodeNetworks } from '../../model/networks/common-cell.ts';
import { type NetworkMap, networkMapFor } from '../../model/networks/network-map.ts';
import type { Logger } from '../../runtime/log.ts';
import { readBounded } from '../files/bounded-file.ts';
import { parseSaved, saveFile } from '../files/saved-file.ts';

/** What the last map that was right says about this node. */
export interface LastMap {
  /** Undefined: no entry selects the node. */
  readonly networks: NodeNetworks | undefined;
}

export interface MapInUse {
  /** What goes over the networks found; undefined: nothing does. */
  readonly override: NodeNetworks | undefined;
  /** Why the map as it stands cannot be used. */
  readonly fault: { readonly reason: 'InvalidMap' | 'NodeUnknown'; readonly message: string } | undefined;
  /** Whether the override is what the map says, or what it said before the fault. */
  readonly isKept: boolean;
  /** To be remembered: the map is right. */
  readonly good: LastMap | undefined;
}

export interface MapSources {
  /** Undefined: no map is configured. */
  readonly map: NetworkMap | Error | undefined;
  /** Undefined: the map selects nodes by labels, and the node's are not known. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  /** NUMA nodes of this host. */
  readonly cells: CpuSet;
  readonly last: LastMap | undefined;
}

/** A map with a fault changes nothing: what the last good one said of this node stays in use. */
export function mapInUse({ map, labels, cells, last }: MapSources): MapInUse {
  const kept = (reason: 'InvalidMap' | 'NodeUnknown', message: string): MapInUse => ({
    override: last?.networks,
    fault: { reason, message },
    isKept: last !== undefined,
    good: undefined,
  });
  if (map === undefined) return { override: undefined, fault: undefined, isKept: false, good: undefined };
  if (map instanceof Error) return kept('InvalidMap', map.message);
  if (labels === undefined) return kept('NodeUnknown', 'the network map selects nodes by labels, not known yet');
  try {
    const networks = networkMapFor(map, labels, cells);
    return { override: networks, fault: undefined, isKept: false, good: { networks } };
  } catch (error) {
    return kept('InvalidMap', (error as Error).message);
  }
}

/**
 * Remembers the last good map, in the file too, and says what is in use.
 * @returns called with the map as it is now
 */
export function createMapMemory(file: LastMapFile, log: Logger): (sources: Omit<MapSources, 'last'>) => MapInUse {
  let last: LastMap | undefined;
  let isLoaded = false;
  let saved = '';
  return (sources) => {
    if (!isLoaded && sources.map !== undefined) {
      last = file.load(sources.cells);
      isLoaded = true;
    }
    const used = mapInUse({ ...sources, last });
    if (used.good === undefined) return used;
    last = used.good;
    const text = lastMapText(last);
    if (text === saved) return used;
    saved = text;
    try {
      file.save(last);
    } catch (err) {
      log.warn({ err }, 'saving the network map failed; a faulty map after a restart leaves the node without networks');
    }
    return used;
  };
}

function lastMapText({ networks }: LastMap): string {
  const written = networks && {
    physnets: Object.fromEntries([...networks.physnets].map(([name, cells]) => [name, cells.toString()])),
    ...(networks.tunnel && { tunnel: networks.tunnel.toString() }),
  };
  return JSON.stringify({ networks: written });
}

/** Keeps the last good map beyond the agent's life: an agent is restarted more often than a map is repaired. */
export interface LastMapFile {
  /**
   * Undefined where nothing was kept, or what was kept cannot be true of this host.
   * @param cells NUMA nodes of this host
   */
  load(cells: CpuSet): LastMap | undefined;
  /** @throws the system's error */
  save(last: LastMap): void;
}

/** Bytes; a map has a MiB at most, and this is one node's part of it. */
const MOST = 1024 * 1024;
const cellList = z.string().transform((text) => CpuSet.parse(text, MAX_CELL_ID));
const kept = z.object({
  networks: z.object({ physnets: z.record(z.string(), cellList), tunnel: cellList.optional() }).optional(),
});

/** @param onUnread called with why there is a file that cannot be read */
export function createLastMapFile(path: string, onUnread: (why: string) => void): LastMapFile {
  return {
    load(cells) {
      let found: z.infer<typeof kept>;
      try {
        found = parseSaved(readBounded(path, MOST), kept);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') onUnread((error as Error).message);
        return undefined;
      }
      const { networks } = found;
      if (networks === undefined) return { networks: undefined };
      const physnets = new Map(Object.entries(networks.physnets));
      const all = [...physnets.values(), networks.tunnel ?? CpuSet.EMPTY];
      return all.every((one) => one.isSubsetOf(cells))
        ? { networks: { physnets, tunnel: networks.tunnel } }
        : undefined;
    },
    save(last) {
      saveFile(path, lastMapText(last));
    },
  };
}
