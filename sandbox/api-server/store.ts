import { deepFreeze, type KubeObject } from '../objects.ts';

/** One change for watchers. `object` of a DELETED change has the version of the deletion. */
export interface StoreChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly collection: string;
  readonly key: string;
  readonly object: KubeObject;
  readonly previous: KubeObject | undefined;
  readonly version: number;
}

type Listener = (change: StoreChange) => void;

/**
 * All objects of the API server, and their newest changes. Stored objects never change. Owner: the registry writes,
 * lists and watches read. Age: every object has the version of its last change. End: a deletion removes an object, and
 * the history keeps the newest `maxHistory` changes; nothing survives the process.
 */
export class Store {
  readonly #maxHistory: number;
  readonly #collections = new Map<string, Map<string, KubeObject>>();
  readonly #listeners = new Set<Listener>();
  readonly #history: StoreChange[] = [];
  readonly #undelivered: StoreChange[] = [];
  #version = 0;
  #compacted = 0;
  #isDelivering = false;

  /** @param maxHistory changes for watches and pages that start in the past */
  constructor(maxHistory = 5_000) {
    this.#maxHistory = maxHistory;
  }

  /** Of the last change, in one counter for all collections, as in etcd. */
  get version(): number {
    return this.#version;
  }

  /** The newest version that is no longer in the history: watches from earlier ones are refused. */
  get compacted(): number {
    return this.#compacted;
  }

  get(collection: string, key: string): KubeObject | undefined {
    return this.#collections.get(collection)?.get(key);
  }

  list(collection: string): KubeObject[] {
    return inOrder(this.#collections.get(collection) ?? new Map()).map(([, object]) => object);
  }

  /** The objects as they were at a version, by key; undefined if its history is no longer there. */
  listAt(collection: string, version: number): [key: string, object: KubeObject][] | undefined {
    const objects = new Map(this.#collections.get(collection));
    const later = version === this.#version ? [] : this.since(collection, version);
    for (const { key, previous } of later?.toReversed() ?? []) {
      if (previous) objects.set(key, previous);
      else objects.delete(key);
    }
    return later && inOrder(objects);
  }

  *all() {
    for (const [collection, objects] of this.#collections) {
      for (const [key, object] of objects) yield { collection, key, object };
    }
  }

  put(collection: string, key: string, object: KubeObject): KubeObject {
    const objects = this.#collections.get(collection) ?? new Map<string, KubeObject>();
    this.#collections.set(collection, objects);
    const previous = objects.get(key);
    const stored = this.#stamped(object);
    objects.set(key, stored);
    const type = previous ? 'MODIFIED' : 'ADDED';
    this.#publish({ type, collection, key, object: stored, previous, version: this.#version });
    return stored;
  }

  remove(collection: string, key: string): KubeObject | undefined {
    const previous = this.get(collection, key);
    if (!previous) return undefined;
    this.#collections.get(collection)?.delete(key);
    const object = this.#stamped(previous);
    this.#publish({ type: 'DELETED', collection, key, object, previous, version: this.#version });
    return object;
  }

  since(collection: string, after: number): StoreChange[] | undefined {
    if (after < this.#compacted) return undefined;
    return this.#history.filter((change) => change.version > after && change.collection === collection);
  }

  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #stamped(object: KubeObject): KubeObject {
    this.#version++;
    return deepFreeze({ ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } });
  }

  #publish(change: StoreChange): void {
    this.#history.push(change);
    while (this.#history.length > this.#maxHistory) this.#compacted = this.#history.shift()!.version;
    this.#undelivered.push(change);
    // A listener may write. Its change waits, so that every listener receives the same order.
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    try {
      for (let next = this.#undelivered.shift(); next; next = this.#undelivered.shift()) {
        for (const listener of [...this.#listeners]) listener(next);
      }
    } finally {
      this.#isDelivering = false;
    }
  }
}

function inOrder(objects: ReadonlyMap<string, KubeObject>): [key: string, object: KubeObject][] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : 1));
}
