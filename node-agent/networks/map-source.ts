import { basename, dirname } from 'node:path';
import { cut } from '../../model/errors.ts';
import { physnetResource } from '../../model/names.ts';
import { type NetworkMap, NetworkMapError, parseNetworkMap } from '../../model/networks/network-map.ts';
import { everyTick, sleep } from '../../runtime/time.ts';
import { readBounded } from '../files/bounded-file.ts';
import { parseBoundedYaml } from '../files/bounded-yaml.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { ChangeSignal } from '../lifecycle/duty.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

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
function parseNetworkMapText(file: string, text: string): NetworkMap {
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

/** Seconds between reads of the node's labels, where the map needs them, and until the first successful one. */
const LABELS_SECONDS = 60;
const LABELS_RETRY_SECONDS = 2;

/** Seconds between reads of a map that cannot be read. */
const RETRY_SECONDS = 10;

export interface MapSourceDeps {
  /** The operator's map; undefined if there is none. */
  readonly file: string | undefined;
  /** The node's labels. @throws KubeError */
  readonly readLabels: (signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;
  readonly log: AgentLogger;
}

export interface MapListeners {
  readonly onMap: () => void;
  readonly onLabels: () => void;
  /** Receives what a listener throws while no caller waits for it. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * The operator's map, and the node's labels if the map selects nodes by them. Age: the map is as old as its file, labels that
 * cannot be read stay. End: the next read.
 */
export class MapSource {
  readonly #deps: MapSourceDeps;
  readonly #changes = new ChangeSignal();
  #map: NetworkMap | Error | undefined;
  #labels: Readonly<Record<string, string>> | undefined;

  constructor(deps: MapSourceDeps) {
    this.#deps = deps;
  }

  /** The map at its last read, or why it is unusable; undefined without a file. */
  get map(): NetworkMap | Error | undefined {
    return this.#map;
  }

  /** The labels that the map needs: empty if it needs none, undefined until they have been read. */
  get labels(): Readonly<Record<string, string>> | undefined {
    return this.#selectsNodes() ? this.#labels : {};
  }

  /** Follows both until the signal aborts, and calls the listener after each read. It reads the map at once. */
  follow({ onMap, onLabels, onFailure }: MapListeners, signal: AbortSignal): void {
    const { file, log } = this.#deps;
    if (file === undefined) return;
    const onChange = (name: string | undefined) => {
      // A mounted ConfigMap changes when the directory that the file's link leads through is renamed.
      if (name !== undefined && name !== basename(file) && !name.startsWith('..')) return;
      this.#read(file);
      onMap();
    };
    watchDirectory({ path: dirname(file), signal, onChange, log });
    // While the directory is missing, nothing else reads it.
    this.#read(file);
    // What cannot be read now causes no event when it can be read again.
    const retry = () => {
      if (this.#map instanceof Error && this.#map.cause !== undefined) onChange(undefined);
    };
    signal.addEventListener('abort', everyTick(RETRY_SECONDS, retry), { once: true });
    this.#followLabels(onLabels, signal).catch(onFailure);
  }

  #selectsNodes(): boolean {
    return this.#map !== undefined && !(this.#map instanceof Error) && hasNodeSelectors(this.#map);
  }

  #read(file: string): void {
    try {
      this.#map = readNetworkMap(file);
    } catch (error) {
      this.#map = error as Error;
    }
    this.#changes.set();
  }

  async #followLabels(onLabels: () => void, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#changes.clear();
      if (!this.#selectsNodes()) {
        await this.#changes.wait(signal);
        continue;
      }
      this.#labels = await this.#deps.readLabels(signal).catch(() => this.#labels);
      onLabels();
      const seconds = this.#labels === undefined ? LABELS_RETRY_SECONDS : LABELS_SECONDS;
      await sleep(seconds, signal).catch(() => undefined);
    }
  }
}
