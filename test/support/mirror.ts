import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import { createReflector } from '../../kube/reflector.ts';
import { objectKey } from '../../kube/resources.ts';
import type { Logger } from '../../runtime/log.ts';
import { apiVersionOf, type ResourceType } from '../../sandbox/api-server/built-in-types.ts';
import type { LocalChange } from '../../sandbox/clients/local-client.ts';
import { deepFreeze, type JsonValue, type KubeObject } from '../../sandbox/objects.ts';

/**
 * The watched copy of one type's objects. It includes the owner's own writes from the time of their response: after a
 * write, no earlier state is read.
 */
export interface Mirror {
  run(signal: AbortSignal): Promise<void>;
  readonly whenSynced: Promise<void>;
  get(namespace: string | undefined, name: string): KubeObject | undefined;
  list(): KubeObject[];
  /**
   * Waits for a state of the object that is newer than `known`. A 409 response to a write of `known` guarantees that
   * one exists.
   * @returns undefined after the object is deleted or replaced by another with its name
   */
  newerThan(known: KubeObject, signal: AbortSignal): Promise<KubeObject | undefined>;
  /** Adds the response of a write. */
  accept(object: KubeObject): void;
  follow(listener: (change: LocalChange<KubeObject>) => void): () => void;
}

const anyObject = z.looseObject({ metadata: z.looseObject({ name: z.string(), namespace: z.string().optional() }) });
/** Number of deleted objects that are remembered, so that a late response does not add them again. */
const MAX_GONE = 20_000;
const CHECK_MILLISECONDS = 5;

export function createMirror(client: KubeClient, type: ResourceType, log: Logger): Mirror {
  const items = new Map<string, KubeObject>();
  const gone = new Set<string>();
  const listeners = new Set<(change: LocalChange<KubeObject>) => void>();
  const tell = (change: LocalChange<KubeObject>) => {
    for (const listener of listeners) listener(change);
  };

  const remove = (key: string, uid: string | undefined) => {
    if (uid !== undefined) gone.add(uid);
    if (gone.size > MAX_GONE) for (const old of gone) if (gone.delete(old)) break;
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
      // The name was reused before the deletion arrived: the state of the older object is outdated.
      if (versionOf(given) < versionOf(before)) return;
      remove(key, before.metadata.uid);
      before = undefined;
    }
    if (before && versionOf(given) <= versionOf(before)) return;
    const object = deepFreeze(given as JsonValue) as KubeObject;
    items.set(key, object);
    tell({ type: before ? 'MODIFIED' : 'ADDED', object, previous: before });
  };

  const root = type.group === '' ? `/api/${apiVersionOf(type)}` : `/apis/${apiVersionOf(type)}`;
  const reflector = createReflector({
    client,
    path: `${root}/${type.plural}`,
    schema: anyObject,
    // Items in lists of built-in types have no apiVersion and kind.
    project: (object) => ({ whole: { apiVersion: apiVersionOf(type), kind: type.kind, ...object } as KubeObject }),
    onChange: ({ key, before, after }) => {
      if (after) accept(after.whole);
      else remove(key, before?.whole.metadata.uid);
    },
    log,
    nowSeconds: () => performance.now() / 1000,
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
    async newerThan(known, signal) {
      const key = objectKey(known.metadata);
      for (;;) {
        const current = items.get(key);
        if (current === undefined || current.metadata.uid !== known.metadata.uid) return undefined;
        if (versionOf(current) > versionOf(known)) return current;
        await delay(CHECK_MILLISECONDS, undefined, { signal });
      }
    },
    accept,
    follow,
  };
}

/** Comparable integers (documented since Kubernetes 1.35; etcd's revisions always were). */
const versionOf = ({ metadata }: KubeObject) => BigInt(metadata.resourceVersion ?? '0');
