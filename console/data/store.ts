import { type NodeItem, nodeItem } from './node.ts';
import { type Shape, shapeOf } from './shape.ts';
import type { NodeContent, PodContent, RunningEntry, ShapeContent, Status, WireRecord } from './wire.ts';

export interface PodItem extends PodContent {
  readonly uid: string;
  /** namespace/name of the pod. */
  readonly key: string;
}

/**
 * The cluster according to the latest records. The store applies records on arrival, even while the page is hidden, so
 * its memory depends on the size of the cluster and not on time.
 */
export class Store {
  readonly nodes = new Map<string, NodeItem>();
  /** By uid. */
  readonly pods = new Map<string, PodItem>();
  /** By uid: running pods with details that the nodes' records do not contain. */
  readonly running = new Map<string, RunningEntry>();
  status: Status | undefined;
  /** By their content: nodes of the same model share one. */
  readonly #shapes = new Map<string, Shape>();

  podNamed(key: string): PodItem | undefined {
    return [...this.pods.values()].find((pod) => pod.key === key);
  }

  take(records: readonly WireRecord[]): void {
    for (const record of records) {
      switch (record[0]) {
        case 'n':
          if (record.length === 2) this.nodes.delete(record[1]);
          else this.#takeNode(record[1], record[2]);
          break;
        case 'p':
          if (record.length === 2) this.pods.delete(record[1]);
          else this.#takePod(record[1], record[2]);
          break;
        case 'r':
          if (record.length === 2) this.running.delete(record[1]);
          else this.running.set(record[1], record[2]);
          break;
        case 'c':
          this.status = record[1];
          break;
        default:
          // A record of a kind that only a newer page uses.
          break;
      }
    }
  }

  #takeNode(name: string, content: NodeContent): void {
    const shape = content.shape && this.#shapeOf(content.shape);
    this.nodes.set(name, nodeItem(name, shape, content, this.nodes.get(name)));
  }

  #takePod(uid: string, content: PodContent): void {
    this.pods.set(uid, { ...content, uid, key: `${content.namespace}/${content.name}` });
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
