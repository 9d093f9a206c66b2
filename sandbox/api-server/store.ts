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

export type Store = ReturnType<typeof createStore>;

/** Stored objects never change. @param maxHistory changes for watches that start in the past */
export function createStore(maxHistory = 5_000) {
  const collections = new Map<string, Map<string, KubeObject>>();
  const listeners = new Set<(change: StoreChange) => void>();
  const history: StoreChange[] = [];
  const undelivered: StoreChange[] = [];
  let version = 0;
  let compacted = 0;
  let delivering = false;

  const publish = (change: StoreChange) => {
    history.push(change);
    while (history.length > maxHistory) compacted = history.shift()!.version;
    undelivered.push(change);
    // A listener may write. Its change waits, so that every listener receives the same order.
    if (delivering) return;
    delivering = true;
    try {
      for (let next = undelivered.shift(); next; next = undelivered.shift()) {
        for (const listener of [...listeners]) listener(next);
      }
    } finally {
      delivering = false;
    }
  };

  const stamped = (object: KubeObject) => {
    version++;
    return deepFreeze({ ...object, metadata: { ...object.metadata, resourceVersion: String(version) } });
  };

  return {
    /** Of the last change, in one counter for all collections, as in etcd. */
    get version() {
      return version;
    },
    /** The newest version that is no longer in the history: watches from earlier ones are refused. */
    get compacted() {
      return compacted;
    },
    get: (collection: string, key: string) => collections.get(collection)?.get(key),
    list(collection: string) {
      const objects = [...(collections.get(collection) ?? [])];
      return objects.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
    },
    *all() {
      for (const [collection, objects] of collections) {
        for (const [key, object] of objects) yield { collection, key, object };
      }
    },
    put(collection: string, key: string, object: KubeObject) {
      const objects = collections.get(collection) ?? new Map<string, KubeObject>();
      collections.set(collection, objects);
      const previous = objects.get(key);
      const stored = stamped(object);
      objects.set(key, stored);
      publish({ type: previous ? 'MODIFIED' : 'ADDED', collection, key, object: stored, previous, version });
      return stored;
    },
    remove(collection: string, key: string) {
      const previous = collections.get(collection)?.get(key);
      if (!previous) return undefined;
      collections.get(collection)?.delete(key);
      const object = stamped(previous);
      publish({ type: 'DELETED', collection, key, object, previous, version });
      return object;
    },
    since(collection: string, after: number) {
      if (after < compacted) return undefined;
      return history.filter((change) => change.version > after && change.collection === collection);
    },
    subscribe(listener: (change: StoreChange) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
