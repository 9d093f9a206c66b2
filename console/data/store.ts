import { type NodeItem, nodeItem } from './node.ts';
import { type Shape, shapeOf } from './shape.ts';
import type { NodeContent, PodContent, RunningEntry, ShapeContent, Status, WireRecord } from './wire.ts';

export interface PodItem extends PodContent {
  readonly uid: string;
  /** namespace/name of its VM, which stays the same with another launcher; of the pod if it has no VM. */
  readonly key: string;
}

/** namespace/name of a pod. */
export const podName = ({ namespace, name }: PodContent): string => `${namespace}/${name}`;

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

  /**
   * The waiting pod of a VM, or of this name. Of several pods of a VM, the one that may still start, then the newest.
   * @param name namespace/name
   */
  podNamed(name: string): PodItem | undefined {
    const pods = [...this.pods.values()].filter((pod) => pod.key === name || podName(pod) === name);
    const age = ({ rejected, since = '' }: PodItem) => `${rejected === undefined ? 1 : 0}${since}`;
    return pods.sort((a, b) => age(b).localeCompare(age(a)))[0];
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
    this.pods.set(uid, { ...content, uid, key: `${content.namespace}/${content.vm ?? content.name}` });
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
