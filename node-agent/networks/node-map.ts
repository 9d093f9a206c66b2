import { basename, dirname } from 'node:path';
import * as z from 'zod';
import { CpuSet } from '../../model/cpu-set.ts';
import { cut } from '../../model/errors.ts';
import { MAX_CELL_ID } from '../../model/host.ts';
import { isObject } from '../../model/json.ts';
import { physnetResource } from '../../model/names.ts';
import { type NetworkMap, NetworkMapError, networkMapFor, parseNetworkMap } from '../../model/networks/network-map.ts';
import type { NodeNetworks } from '../../model/networks/reach.ts';
import { sleep } from '../../runtime/time.ts';
import { parseSaved, readBounded } from '../files/bounded-file.ts';
import { parseBoundedYaml } from '../files/bounded-yaml.ts';
import { type OnFileProblem, StateFile } from '../files/state-file.ts';
import { followFiles } from '../files/watch-directory.ts';
import { ChangeSignal } from '../lifecycle/duty.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';

export interface MapInUse {
  /** The override of the discovered networks; undefined if there is none. */
  readonly override: NodeNetworks | undefined;
  readonly fault: { readonly reason: 'InvalidMap' | 'NodeUnknown'; readonly message: string } | undefined;
  /** Whether the override comes from the last good map instead of the current one. */
  readonly isLastGood: boolean;
}

export interface NodeMapDeps {
  /** The operator's map; undefined if there is none. */
  readonly networkMap: string | undefined;
  /** The file of the last good map. */
  readonly lastMap: string;
  readonly onFileProblem?: OnFileProblem;
  /** The node's labels. @throws KubeError */
  readonly labels: (signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;
  readonly log: AgentLogger;
}

export interface MapListeners {
  readonly onMap: () => void;
  readonly onLabels: () => void;
  /** Receives what a listener throws while no caller waits for it. */
  readonly onFailure: (error: unknown) => void;
}

/** Bytes; a ConfigMap has at most a MiB, and a map a line for each network. */
const MAX_MAP_BYTES = 256 * 1024;
/** Bytes; a map has at most a MiB, and this is one node's part of it. */
const MAX_SAVED_BYTES = 1024 * 1024;
const MAX_REASON_CHARACTERS = 300;

/** Seconds between reads of the node's labels, where the map needs them, and until the first successful one. */
const LABELS_SECONDS = 60;
const LABELS_RETRY_SECONDS = 2;

const cellList = z.string().transform((text) => CpuSet.parse(text, MAX_CELL_ID));
/** A zod record would drop a physnet with the name `__proto__`. */
const byPhysnet = z.preprocess(
  (value) => (isObject(value) ? new Map(Object.entries(value)) : value),
  z.map(z.string(), cellList),
);
/** Without networks: no entry selects the node. */
const lastMap = z.object({
  networks: z
    .object({ physnets: byPhysnet, tunnel: cellList.optional() })
    .transform(({ physnets, tunnel }): NodeNetworks => ({ physnets, tunnel }))
    .optional(),
});
type LastMap = z.infer<typeof lastMap>;

/**
 * What the operator's map says about this node, from the map, and the node's labels if the map selects nodes by them. Age: the
 * map is as old as its file, labels that cannot be read stay. End: the next read.
 * A faulty map changes nothing, because the last good one stays in use. That survives the agent, because agents restart
 * more often than people repair maps; it ends with the next valid map. If it names a NUMA node that this host lacks, it is
 * not used.
 */
export class NodeMap {
  readonly #deps: NodeMapDeps;
  readonly #last: StateFile<LastMap>;
  readonly #changes = new ChangeSignal();
  /** The map at its last read, or why it is unusable; undefined without a file. */
  #map: NetworkMap | Error | undefined;
  #labels: Readonly<Record<string, string>> | undefined;

  constructor(deps: NodeMapDeps) {
    const { lastMap: path, onFileProblem: onProblem, log } = deps;
    this.#deps = deps;
    const text = { format: lastMapText, parse: (saved: string) => parseSaved(saved, lastMap) };
    this.#last = new StateFile({ path, maxBytes: MAX_SAVED_BYTES, ...text, log, onProblem });
  }

  /** Follows map and labels until the signal aborts, and calls the listener after each read. It reads the map at once. */
  follow({ onMap, onLabels, onFailure }: MapListeners, signal: AbortSignal): void {
    const { networkMap: file, log } = this.#deps;
    this.#last.load(signal);
    if (file === undefined) return;
    const read = () => {
      this.#read(file);
      onMap();
    };
    // A mounted ConfigMap changes when the directory that the file's link leads through is renamed.
    const isFile = (name: string) => name === basename(file) || name.startsWith('..');
    // What cannot be read now causes no event when it can be read again.
    const isDue = () => this.#map instanceof Error;
    followFiles({ directory: dirname(file), isFile, isDue, read, signal, log });
    this.#followLabels(onLabels, signal).catch(onFailure);
  }

  /** The map to use on a host with these NUMA nodes. */
  use(cells: CpuSet): MapInUse {
    const map = this.#map;
    if (map === undefined) return { override: undefined, fault: undefined, isLastGood: false };
    if (map instanceof Error) return this.#useLast(cells, 'InvalidMap', map.message);
    const labels = this.#selectsNodes ? this.#labels : {};
    if (labels === undefined) {
      const unknown = 'the network map selects nodes by labels, which are unknown until the Node is read';
      return this.#useLast(cells, 'NodeUnknown', unknown);
    }
    try {
      const networks = networkMapFor(map, labels, cells);
      this.#last.set({ networks });
      return { override: networks, fault: undefined, isLastGood: false };
    } catch (error) {
      return this.#useLast(cells, 'InvalidMap', (error as Error).message);
    }
  }

  #useLast(cells: CpuSet, reason: 'InvalidMap' | 'NodeUnknown', message: string): MapInUse {
    const { value: last } = this.#last;
    const networks = last?.networks;
    const located = networks === undefined ? [] : [...networks.physnets.values(), networks.tunnel ?? CpuSet.EMPTY];
    const isLastGood = last !== undefined && located.every((network) => network.isSubsetOf(cells));
    return { override: isLastGood ? networks : undefined, fault: { reason, message }, isLastGood };
  }

  get #selectsNodes(): boolean {
    const entries = this.#map instanceof Error ? [] : (this.#map ?? []);
    return entries.some(({ nodeSelector = {} }) => Object.keys(nodeSelector).length > 0);
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
      if (!this.#selectsNodes) {
        await this.#changes.wait(signal);
        continue;
      }
      this.#labels = await this.#deps.labels(signal).catch(() => this.#labels);
      onLabels();
      const seconds = this.#labels === undefined ? LABELS_RETRY_SECONDS : LABELS_SECONDS;
      await sleep(seconds, signal).catch(() => undefined);
    }
  }
}

/** Reads the operator's network map. @throws NetworkMapError naming the file and the fault */
export function readNetworkMap(file: string): NetworkMap {
  let text: string;
  try {
    text = readBounded(file, MAX_MAP_BYTES);
  } catch (cause) {
    throw new NetworkMapError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
  try {
    const map = parseNetworkMap(parseYaml(text));
    for (const physnet of map.flatMap(({ physnets = {} }) => Object.keys(physnets))) physnetResource(physnet);
    return map;
  } catch (cause) {
    throw new NetworkMapError(`${file}: ${cut((cause as Error).message, MAX_REASON_CHARACTERS)}`, { cause });
  }
}

function parseYaml(text: string): unknown {
  try {
    return parseBoundedYaml(text);
  } catch (cause) {
    throw new NetworkMapError(`not YAML: ${(cause as Error).message}`, { cause });
  }
}

function lastMapText({ networks }: LastMap): string {
  const written = networks && {
    physnets: Object.fromEntries([...networks.physnets].map(([name, cells]) => [name, cells.toString()])),
    ...(networks.tunnel && { tunnel: networks.tunnel.toString() }),
  };
  return JSON.stringify({ networks: written });
}
