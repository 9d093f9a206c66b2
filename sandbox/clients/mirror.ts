import * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import { createReflector, objectKey } from '../../kube/reflector.ts';
import type { Logger } from '../../runtime/log.ts';
import { apiVersionOf, type ResourceType } from '../api-server/resource-types.ts';
import { deepFreeze, type Json, type KubeObject } from '../objects.ts';
import type { LocalChange } from './local-client.ts';

/**
 * The watched copy of one type's objects, with the owner's own writes in it from the moment they are answered: what was
 * written is never read in an older state afterwards.
 */
export interface Mirror {
  run(signal: AbortSignal): Promise<void>;
  readonly whenSynced: Promise<void>;
  get(namespace: string | undefined, name: string): KubeObject | undefined;
  list(): KubeObject[];
  /**
   * Waits for a state of the object that is newer than `known`, which an answer of 409 to a write of `known` promises.
   * @returns undefined once the object is gone, or another has its name
   */
  newerThan(known: KubeObject, signal: AbortSignal): Promise<KubeObject | undefined>;
  /** Takes what a write was answered with. */
  accept(object: KubeObject): void;
  follow(listener: (change: LocalChange<KubeObject>) => void): () => void;
}

const anyObject = z.looseObject({ metadata: z.looseObject({ name: z.string(), namespace: z.string().optional() }) });
/** Objects known to be gone, so that a late answer does not bring them back. */
const MOST_GONE = 20_000;

export function createMirror(client: KubeClient, type: ResourceType, log: Logger): Mirror {
  const items = new Map<string, KubeObject>();
  const gone = new Set<string>();
  const listeners = new Set<(change: LocalChange<KubeObject>) => void>();
  const tell = (change: LocalChange<KubeObject>) => {
    for (const listener of listeners) listener(change);
  };

  const remove = (key: string, uid: string | undefined) => {
    if (uid !== undefined) gone.add(uid);
    if (gone.size > MOST_GONE) for (const old of gone) if (gone.delete(old)) break;
    const before = items.get(key);
    if (before === undefined || before.metadata.uid !== uid) return;
    items.delete(key);
    tell({ type: 'DELETED', object: before, previous: before });
  };

  const accept = (given: KubeObject) => {
    const { uid = '' } = given.metadata;
    const key = objectKey(given.metadata);
    let before = items.get(key);
    if (gone.has(uid)) return;
    if (before && before.metadata.uid !== uid) {
      // The name was taken again before its deletion arrived; an older holder's state comes too late.
      if (versionOf(given) < versionOf(before)) return;
      remove(key, before.metadata.uid);
      before = undefined;
    }
    if (before && versionOf(given) <= versionOf(before)) return;
    const object = deepFreeze(given as Json) as KubeObject;
    items.set(key, object);
    tell({ type: before ? 'MODIFIED' : 'ADDED', object, previous: before });
  };

  const root = type.group === '' ? `/api/${apiVersionOf(type)}` : `/apis/${apiVersionOf(type)}`;
  const reflector = createReflector({
    client,
    path: `${root}/${type.plural}`,
    schema: anyObject,
    // Lists of built-in types leave out what their items are.
    project: (object) => ({ apiVersion: apiVersionOf(type), kind: type.kind, ...object }) as KubeObject,
    onChange: ({ key, before, after }) => {
      if (after) accept(after);
      else remove(key, before?.metadata.uid);
    },
    log,
    now: () => performance.now() / 1000,
  });
  const follow: Mirror['follow'] = (listener) => {
    for (const object of [...items.values()]) listener({ type: 'ADDED', object, previous: undefined });
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return {
    run: (signal) => reflector.run(signal),
    whenSynced: reflector.whenSynced,
    get: (namespace, name) => items.get(type.namespaced ? `${namespace}/${name}` : name),
    list: () => [...items.values()],
    newerThan: (known, signal) =>
      new Promise((resolve, reject) => {
        const key = objectKey(known.metadata);
        const settle = (settled: () => void) => {
          signal.removeEventListener('abort', abort);
          listeners.delete(look);
          settled();
        };
        const abort = () => settle(() => reject(signal.reason as Error));
        const look = () => {
          const current = items.get(key);
          const isSame = current !== undefined && current.metadata.uid === known.metadata.uid;
          if (isSame && versionOf(current) <= versionOf(known)) return;
          settle(() => resolve(isSame ? current : undefined));
        };
        signal.addEventListener('abort', abort);
        listeners.add(look);
        if (signal.aborted) abort();
        else look();
      }),
    accept,
    follow,
  };
}

/** Kubernetes has versions of one resource compared as whole numbers (since 1.35; etcd's revisions always were). */
const versionOf = ({ metadata }: KubeObject) => BigInt(metadata.resourceVersion ?? '0');
