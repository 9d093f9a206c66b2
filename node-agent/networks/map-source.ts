import { basename, dirname } from 'node:path';
import type { NetworkMap } from '../../model/networks/network-map.ts';
import { sleep } from '../../runtime/time.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { hasNodeSelectors, readNetworkMap } from './map-file.ts';

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
export interface MapSource {
  /** The map at its last read, or why it is unusable; undefined without a file. */
  readonly map: NetworkMap | Error | undefined;
  /** The labels that the map needs: empty if it needs none, undefined until they have been read. */
  readonly labels: Readonly<Record<string, string>> | undefined;
  /** Follows both until the signal aborts, and calls the listener after each read. It reads the map at once. */
  follow(listeners: { readonly onMap: () => void; readonly onLabels: () => void }, signal: AbortSignal): void;
}

export function createMapSource({ file, readLabels }: MapSourceDeps): MapSource {
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
    get map() {
      return map;
    },
    get labels() {
      return selectsNodes() ? labels : {};
    },
    follow({ onMap, onLabels }, signal) {
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
