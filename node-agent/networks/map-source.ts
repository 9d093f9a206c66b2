import { basename, dirname } from 'node:path';
import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { cut } from '../../model/errors.ts';
import { MAX_CELL_ID } from '../../model/host.ts';
import { physnetResource } from '../../model/names.ts';
import { type NetworkMap, NetworkMapError, networkMapFor, parseNetworkMap } from '../../model/networks/network-map.ts';
import type { NodeNetworks } from '../../model/networks/reach.ts';
import { sleep } from '../../runtime/time.ts';
import { parseSaved, readBounded, saveFile } from '../files/bounded-file.ts';
import { parseBoundedYaml } from '../files/bounded-yaml.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { ChangeSignal } from '../lifecycle/duty.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

/** Seconds between reads of the node's labels, where the map needs them, and until the first successful one. */
const LABELS_SECONDS = 60;
const LABELS_RETRY_SECONDS = 2;

export interface MapSourceDeps {
  /** The operator's map; undefined if there is none. */
  readonly file: string | undefined;
  /** The node's labels. @throws KubeError */
  readonly readLabels: (signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;
}

/** The operator's map, and the node's labels if the map selects nodes by them. */
export function createMapSource({ file, readLabels }: MapSourceDeps) {
  let map: NetworkMap | Error | undefined;
  let labels: Readonly<Record<string, string>> | undefined;
  const changes = new ChangeSignal();
  const selectsNodes = () => map !== undefined && !(map instanceof Error) && hasNodeSelectors(map);

  const read = (path: string) => {
    try {
      map = readNetworkMap(path);
    } catch (error) {
      map = error as Error;
    }
    changes.set();
  };

  const followLabels = async (onLabels: () => void, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      changes.clear();
      if (!selectsNodes()) {
        await changes.wait(signal);
        continue;
      }
      labels = await readLabels(signal).catch(() => labels);
      onLabels();
      await sleep(labels === undefined ? LABELS_RETRY_SECONDS : LABELS_SECONDS, signal).catch(() => undefined);
    }
  };

  return {
    /** The map at its last read, or why it is unusable; undefined without a file. */
    get map() {
      return map;
    },
    /** The labels that the map needs: empty if it needs none, undefined until they have been read. */
    get labels(): Readonly<Record<string, string>> | undefined {
      return selectsNodes() ? labels : {};
    },
    /** Follows both until the signal aborts, and calls the listener after each read. It reads the map at once. */
    follow({ onMap, onLabels }: { readonly onMap: () => void; readonly onLabels: () => void }, signal: AbortSignal) {
      if (file === undefined) return;
      const onChange = (name: string | undefined) => {
        // A mounted ConfigMap changes when the directory that the file's link leads through is renamed.
        if (name !== undefined && name !== basename(file) && !name.startsWith('..')) return;
        read(file);
        onMap();
      };
      watchDirectory({ path: dirname(file), signal, onChange });
      // While the directory is missing, nothing else reads it.
      read(file);
      void followLabels(onLabels, signal);
    },
  };
}

/** Bytes; a ConfigMap has at most a MiB, and a map a line for each network. */
const MAX_MAP_BYTES = 256 * 1024;
const MAX_REASON_CHARACTERS = 300;

/** Reads the operator's network map. @throws NetworkMapError naming the file and the fault */
export function readNetworkMap(file: string): NetworkMap {
  let text: string;
  try {
    text = readBounded(file, MAX_MAP_BYTES);
  } catch (cause) {
    throw new NetworkMapError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
  return parseNetworkMapText(file, text);
}

/** @throws NetworkMapError naming the file and the fault */
export function parseNetworkMapText(file: string, text: string): NetworkMap {
  const map = named(file, () => parseNetworkMap(parseYaml(text)));
  for (const physnet of map.flatMap(({ physnets = {} }) => Object.keys(physnets))) {
    named(file, () => physnetResource(physnet));
  }
  return map;
}

/** Whether the map has different entries for different nodes. */
export function hasNodeSelectors(map: NetworkMap): boolean {
  return map.some(({ nodeSelector = {} }) => Object.keys(nodeSelector).length > 0);
}

function parseYaml(text: string): unknown {
  try {
    return parseBoundedYaml(text);
  } catch (cause) {
    throw new NetworkMapError(`not YAML: ${(cause as Error).message}`, {
      cause,
    });
  }
}

function named<Value>(file: string, read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw new NetworkMapError(`${file}: ${cut((cause as Error).message, MAX_REASON_CHARACTERS)}`, { cause });
  }
}

export interface LastMap {
  /** Undefined: no entry selects the node. */
  readonly networks: NodeNetworks | undefined;
}

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

/** A faulty map changes nothing. @returns a function to call with the current map */
export function createMapMemory(file: LastMapFile, log: AgentLogger): (sources: MapSources) => MapInUse {
  let last: LastMap | undefined;
  let isLoaded = false;
  let saved = '';

  const useLast = (reason: 'InvalidMap' | 'NodeUnknown', message: string): MapInUse => ({
    override: last?.networks,
    fault: { reason, message },
    isLastGood: last !== undefined,
  });

  const remember = (good: LastMap) => {
    last = good;
    const text = lastMapText(good);
    if (text === saved) return;
    saved = text;
    try {
      file.save(good);
    } catch (err) {
      log.warn({ err }, 'saving the network map failed');
    }
  };

  return ({ map, labels, cells }) => {
    if (map === undefined) return { override: undefined, fault: undefined, isLastGood: false };
    if (!isLoaded) last = file.load(cells);
    isLoaded = true;
    if (map instanceof Error) return useLast('InvalidMap', map.message);
    if (labels === undefined)
      return useLast(
        'NodeUnknown',
        'the network map selects nodes by labels, which are unknown until the Node is read',
      );
    try {
      const networks = networkMapFor(map, labels, cells);
      remember({ networks });
      return { override: networks, fault: undefined, isLastGood: false };
    } catch (error) {
      return useLast('InvalidMap', (error as Error).message);
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
const MAX_SAVED_BYTES = 1024 * 1024;
const cellList = z.string().transform((text) => CpuSet.parse(text, MAX_CELL_ID));
const savedMap = z.object({
  networks: z.object({ physnets: z.record(z.string(), cellList), tunnel: cellList.optional() }).optional(),
});

export function createLastMapFile(path: string, log: AgentLogger) {
  return {
    /** Undefined if nothing was saved, or the saved map does not fit this host. @param cells NUMA nodes of this host */
    load(cells: CpuSet): LastMap | undefined {
      let saved: z.infer<typeof savedMap>;
      try {
        saved = parseSaved(readBounded(path, MAX_SAVED_BYTES), savedMap);
      } catch (error) {
        const { code, message: reason } = error as NodeJS.ErrnoException;
        if (code !== 'ENOENT') log.warn({ reason }, 'reading the saved network map failed');
        return undefined;
      }
      const { networks } = saved;
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
