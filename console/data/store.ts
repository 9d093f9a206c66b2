import { type NodeItem, nodeItem } from './node.ts';
import { type Shape, shapeOf } from './shape.ts';
import type { PodContent, RunningEntry, ShapeContent, Status, WireRecord } from './wire.ts';

export interface PodItem extends PodContent {
  readonly uid: string;
  readonly key: string;
}

export const podName = ({ namespace, name }: PodContent): string => `${namespace}/${name}`;

/** Applies records on arrival, also while the page is hidden: memory depends on the cluster's size, not on time. */
export class Store {
  readonly nodes = new Map<string, NodeItem>();
  readonly pods = new Map<string, PodItem>();
  /** By uid: running pods with details that the nodes' records do not contain. */
  readonly running = new Map<string, RunningEntry>();
  status: Status | undefined;
  /** By their content: nodes of the same model share one. */
  readonly #shapes = new Map<string, Shape>();

  /** @param name namespace/name; of several pods, the one that may still start, then the newest */
  podNamed(name: string): PodItem | undefined {
    const pods = [...this.pods.values()].filter((pod) => pod.key === name || podName(pod) === name);
    const age = ({ rejected, since = '' }: PodItem) => `${rejected === undefined ? 1 : 0}${since}`;
    return pods.sort((a, b) => age(b).localeCompare(age(a)))[0];
  }

  take(records: readonly WireRecord[]): void {
    for (const record of records) {
      // A record of a kind that only a newer page uses is ignored.
      if (record[0] === 'c') this.status = record[1];
      else if (record.length === 2) this.#itemsOf(record[0])?.delete(record[1]);
      else this.#set(record);
    }
  }

  #itemsOf(kind: 'n' | 'p' | 'r'): Map<string, unknown> | undefined {
    return { n: this.nodes, p: this.pods, r: this.running }[kind];
  }

  #set(record: Extract<WireRecord, { readonly length: 3 }>): void {
    if (record[0] === 'n') {
      const [, name, content] = record;
      const shape = content.shape && this.#shapeOf(content.shape);
      this.nodes.set(name, nodeItem(name, shape, content, this.nodes.get(name)));
    } else if (record[0] === 'p') {
      const [, uid, content] = record;
      this.pods.set(uid, { ...content, uid, key: `${content.namespace}/${content.vm ?? content.name}` });
    } else if (record[0] === 'r') this.running.set(record[1], record[2]);
  }

  #shapeOf(content: ShapeContent): Shape {
    const key = JSON.stringify(content);
    const shape = this.#shapes.get(key) ?? shapeOf(content);
    // Shapes of earlier configurations are dropped together, so that they do not add up.
    if (this.#shapes.size > this.nodes.size) this.#shapes.clear();
    this.#shapes.set(key, shape);
    return shape;
  }
}
