import { basename, dirname } from 'node:path';
import { cut } from '../../model/errors.ts';
import { physnetResource } from '../../model/names.ts';
import { type NetworkMap, NetworkMapError, parseNetworkMap } from '../../model/networks/network-map.ts';
import { sleep } from '../../runtime/time.ts';
import { readBounded } from '../files/bounded-file.ts';
import { parseBoundedYaml } from '../files/bounded-yaml.ts';
import { watchDirectory } from '../files/watch-directory.ts';

/** Seconds between reads of the node's labels, where the map needs them, and until the first successful one. */
const LABELS = 60;
const LABELS_AGAIN = 2;

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
  /** Resolves the wait for another map. */
  let wake = () => {};
  const selectsNodes = () => map !== undefined && !(map instanceof Error) && hasNodeSelectors(map);

  const read = (path: string) => {
    try {
      map = readNetworkMap(path);
    } catch (error) {
      map = error as Error;
    }
    wake();
  };

  const followLabels = async (onLabels: () => void, signal: AbortSignal): Promise<void> => {
    signal.addEventListener('abort', () => wake(), { once: true });
    while (!signal.aborted) {
      if (!selectsNodes()) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      labels = await readLabels(signal).catch(() => labels);
      onLabels();
      await sleep(labels === undefined ? LABELS_AGAIN : LABELS, signal).catch(() => undefined);
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
const MOST_MAP = 256 * 1024;
/** Maximum length of an error, which may quote the file, in characters. */
const LONGEST_WHY = 300;

/**
 * Reads the operator's network map.
 *
 * @throws NetworkMapError naming the file and the fault
 */
export function readNetworkMap(file: string): NetworkMap {
  let text: string;
  try {
    text = readBounded(file, MOST_MAP);
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
    throw new NetworkMapError(`${file}: ${cut((cause as Error).message, LONGEST_WHY)}`, { cause });
  }
}
