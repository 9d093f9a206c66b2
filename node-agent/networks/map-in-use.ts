import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { MAX_CELL_ID } from '../../model/host.ts';
import type { NodeNetworks } from '../../model/networks/common-cell.ts';
import { type NetworkMap, networkMapFor } from '../../model/networks/network-map.ts';
import type { Logger } from '../../runtime/log.ts';
import { parseSaved, readBounded, saveFile } from '../files/bounded-file.ts';

/** The last good map's entry for this node. */
export interface LastMap {
  /** Undefined: no entry selects the node. */
  readonly networks: NodeNetworks | undefined;
}

export interface MapInUse {
  /** The override of the discovered networks; undefined if there is none. */
  readonly override: NodeNetworks | undefined;
  /** Why the current map is unusable. */
  readonly fault: { readonly reason: 'InvalidMap' | 'NodeUnknown'; readonly message: string } | undefined;
  /** Whether the override comes from the last good map instead of the current one. */
  readonly isKept: boolean;
}

export interface MapSources {
  /** Undefined if no map is configured. */
  readonly map: NetworkMap | Error | undefined;
  /** Undefined if the map selects nodes by labels and the node's labels are unknown. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  /** NUMA nodes of this host. */
  readonly cells: CpuSet;
}

/**
 * Remembers the last good map, also in a file, and determines which one is in use: a faulty map changes nothing.
 *
 * @returns a function to call with the current map
 */
export function createMapMemory(file: LastMapFile, log: Logger): (sources: MapSources) => MapInUse {
  let last: LastMap | undefined;
  let isLoaded = false;
  let saved = '';

  const kept = (reason: 'InvalidMap' | 'NodeUnknown', message: string): MapInUse => ({
    override: last?.networks,
    fault: { reason, message },
    isKept: last !== undefined,
  });

  const remember = (good: LastMap) => {
    last = good;
    const text = lastMapText(good);
    if (text === saved) return;
    saved = text;
    try {
      file.save(good);
    } catch (err) {
      log.warn({ err }, 'saving the network map failed; with a faulty map, a restart leaves the node without networks');
    }
  };

  return ({ map, labels, cells }) => {
    if (map === undefined) return { override: undefined, fault: undefined, isKept: false };
    if (!isLoaded) last = file.load(cells);
    isLoaded = true;
    if (map instanceof Error) return kept('InvalidMap', map.message);
    if (labels === undefined)
      return kept('NodeUnknown', 'the network map selects nodes by labels, which are unknown until the Node is read');
    try {
      const networks = networkMapFor(map, labels, cells);
      remember({ networks });
      return { override: networks, fault: undefined, isKept: false };
    } catch (error) {
      return kept('InvalidMap', (error as Error).message);
    }
  };
}

function lastMapText({ networks }: LastMap): string {
  const written = networks && {
    physnets: Object.fromEntries([...networks.physnets].map(([name, cells]) => [name, cells.toString()])),
    ...(networks.tunnel && { tunnel: networks.tunnel.toString() }),
  };
  return JSON.stringify({ networks: written });
}

/** Keeps the last good map across restarts of the agent: agents restart more often than people repair maps. */
export type LastMapFile = ReturnType<typeof createLastMapFile>;

/** Bytes; a map has at most a MiB, and this is one node's part of it. */
const MOST = 1024 * 1024;
const cellList = z.string().transform((text) => CpuSet.parse(text, MAX_CELL_ID));
const kept = z.object({
  networks: z.object({ physnets: z.record(z.string(), cellList), tunnel: cellList.optional() }).optional(),
});

/** @param onUnread called with the reason if the file exists and cannot be read */
export function createLastMapFile(path: string, onUnread: (why: string) => void) {
  return {
    /**
     * Undefined if nothing was saved, or the saved map does not fit this host.
     *
     * @param cells NUMA nodes of this host
     */
    load(cells: CpuSet): LastMap | undefined {
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
    /** @throws a system error */
    save(last: LastMap) {
      saveFile(path, lastMapText(last));
    },
  };
}
