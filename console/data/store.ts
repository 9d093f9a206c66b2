import { type NodeItem, nodeItem } from './node.ts';
import { type Shape, shapeOf } from './shape.ts';
import type { PodContent, RunningEntry, Status, WireRecord } from './wire.ts';

export interface PodItem extends PodContent {
  readonly uid: string;
  /** namespace/name of the pod. */
  readonly key: string;
}

/**
 * The cluster according to the latest records. The store applies records on arrival, even while the page is hidden, so
 * its memory depends on the size of the cluster and not on time. Views compare the counts to detect changes.
 */
export class Store {
  readonly nodes = new Map<number, NodeItem>();
  readonly pods = new Map<string, PodItem>();
  /** By uid: running pods with details that the nodes' records do not contain. */
  readonly running = new Map<string, RunningEntry>();
  status: Status | undefined;
  readonly #shapes = new Map<number, Shape>();
  readonly #byName = new Map<string, number>();
  #changes = 0;
  #namings = 0;
  #podChanges = 0;

  /** Number of changes of nodes so far. */
  get changes(): number {
    return this.#changes;
  }

  /** Number of added and removed nodes so far. */
  get namings(): number {
    return this.#namings;
  }

  get podChanges(): number {
    return this.#podChanges;
  }

  get shapes(): number {
    return this.#shapes.size;
  }

  nodeNamed(name: string): NodeItem | undefined {
    const id = this.#byName.get(name);
    return id === undefined ? undefined : this.nodes.get(id);
  }

  podNamed(key: string): PodItem | undefined {
    for (const pod of this.pods.values()) if (pod.key === key) return pod;
    return undefined;
  }

  clear(): void {
    this.nodes.clear();
    this.pods.clear();
    this.running.clear();
    this.#shapes.clear();
    this.#byName.clear();
    this.#changes++;
    this.#namings++;
    this.#podChanges++;
  }

  take(records: readonly WireRecord[]): void {
    for (const record of records) {
      switch (record[0]) {
        case 's':
          this.#shapes.set(record[1], shapeOf(record[2]));
          break;
        case 'n':
          this.#takeNode(record);
          break;
        case 'p':
          this.#takePod(record);
          break;
        case 'r':
          this.#changes++;
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

  #takeNode(record: Extract<WireRecord, readonly ['n', ...unknown[]]>): void {
    const id = record[1];
    const change = ++this.#changes;
    const before = this.nodes.get(id);
    if (record.length === 2) {
      this.nodes.delete(id);
      if (before) this.#byName.delete(before.name);
      this.#namings++;
      return;
    }
    const [, , name, shape, flags, dpu, owners, inFlight, resources, dpuSince] = record;
    if (before?.name !== name) {
      if (before) this.#byName.delete(before.name);
      this.#byName.set(name, id);
      this.#namings++;
    }
    const parts = { id, name, shape: this.#shapes.get(shape), flags, dpu, dpuSince, owners, inFlight, resources };
    this.nodes.set(id, nodeItem({ ...parts, change }, before));
  }

  #takePod(record: Extract<WireRecord, readonly ['p', ...unknown[]]>): void {
    const uid = record[1];
    this.#podChanges++;
    if (record.length === 2) this.pods.delete(uid);
    else this.pods.set(uid, { ...record[2], uid, key: `${record[2].namespace}/${record[2].name}` });
  }
}
