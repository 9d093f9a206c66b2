import { basename, dirname } from 'node:path';
import type { NetworkMap } from '../../model/networks/network-map.ts';
import { everyTick, sleep } from '../../runtime/time.ts';
import { watchDirectory } from '../files/watch-directory.ts';
import { ChangeSignal } from '../lifecycle/duty.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { hasNodeSelectors, readNetworkMap } from './map-file.ts';

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
