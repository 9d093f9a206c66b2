import * as z from 'zod';
import { reportWithoutPods } from '../../model/kubelet/usage.ts';
import { FairIntake } from '../../runtime/fair-intake.ts';
import { NODE_TOPOLOGY_API, type NodeTopologyStatus } from '../node-topology.ts';
import { createReflector, type WatchOptions } from '../reflector.ts';
import { objectMeta } from '../resources.ts';

export const NODE_TOPOLOGIES_PATH = `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`;

/** A report as received. It is parsed when it is used, since parsing is most of its cost. */
const rawReport = z.object({ metadata: objectMeta.pick({ name: true }), status: z.unknown().optional() });

/**
 * Watches the reports of nodes and keeps none. Each node gets a limited share of the process.
 * @param take receives a node's newest report; undefined if it was deleted or has no status
 */
export function createReportReflector(options: WatchOptions, take: (node: string, raw: unknown) => void) {
  const path = NODE_TOPOLOGIES_PATH;
  const intake = new FairIntake<unknown>((node, raw) => {
    try {
      take(node, raw);
    } catch (err) {
      options.log.error({ err, path, object: node }, 'processing an object failed');
    }
  });
  return createReflector({
    ...options,
    path,
    schema: rawReport,
    project({ metadata, status }): true {
      intake.offer(metadata.name ?? '', status);
      return true;
    },
    onChange: ({ key, after }) => {
      if (after === undefined) intake.offer(key, undefined);
    },
  });
}

export type SharedShape<T> = T & {
  readonly id: number;
  /** Equal for equal nodes. */
  readonly key: string;
};

/**
 * What does not depend on the pods of nodes. Nodes of the same model share it: 128 CPUs take 20 KB of objects. Owner:
 * the reports with that content. End: the last of them returns it.
 */
export class NodeShapes<T extends object> {
  readonly #prepare: (withoutPods: NodeTopologyStatus) => T;
  readonly #shapes = new Map<string, { readonly shape: SharedShape<T>; users: number }>();
  #lastId = 0;

  /** @param prepare what to share, from the report of a node without pods */
  constructor(prepare: (withoutPods: NodeTopologyStatus) => T) {
    this.#prepare = prepare;
  }

  /** Return it with `release`. @throws HostError if the report contradicts itself; ParseError */
  take(status: NodeTopologyStatus): SharedShape<T> {
    const withoutPods = reportWithoutPods(status);
    const key = JSON.stringify(withoutPods);
    let entry = this.#shapes.get(key);
    if (entry === undefined) {
      entry = { shape: { ...this.#prepare(withoutPods), id: ++this.#lastId, key }, users: 0 };
      this.#shapes.set(key, entry);
    }
    entry.users++;
    return entry.shape;
  }

  release({ key }: SharedShape<T>): void {
    const entry = this.#shapes.get(key);
    if (entry !== undefined && --entry.users === 0) this.#shapes.delete(key);
  }
}
