import { at, type KubeObject } from '../objects.ts';
import { type ResourceType, typeOfCollection } from './built-in-types.ts';
import { ApiError, assertSame } from './errors.ts';
import { timestamp } from './preparation.ts';
import type { Registry } from './registry.ts';
import type { Call, DeleteOptions } from './requests.ts';
import type { Store, StoreChange } from './store.ts';

/** A marked object waits for its kubelet or its finalizers. */
type Deletion = { kind: 'mark'; object: KubeObject } | { kind: 'remove' } | { kind: 'none' };

export function deletionOf(type: ResourceType, object: KubeObject, options: DeleteOptions): Deletion {
  const { uid, resourceVersion } = options.preconditions ?? {};
  assertSame(type, object.metadata.name, 'UID', uid, object.metadata.uid);
  assertSame(type, object.metadata.name, 'ResourceVersion', resourceVersion, object.metadata.resourceVersion);
  const grace = gracePeriodSeconds(type, object, options);
  const { metadata } = object;
  const hasFinalizers = (metadata.finalizers?.length ?? 0) > 0;
  if (!hasFinalizers && grace === 0) return { kind: 'remove' };
  const before = metadata.deletionGracePeriodSeconds;
  if (metadata.deletionTimestamp !== undefined && (before ?? 0) <= grace) return { kind: 'none' };
  const marked = structuredClone(object);
  marked.metadata.deletionTimestamp = timestamp(Date.now() + grace * 1000);
  marked.metadata.deletionGracePeriodSeconds = grace;
  return { kind: 'mark', object: marked };
}

export function isFinished({ metadata }: KubeObject): boolean {
  return (
    metadata.deletionTimestamp !== undefined &&
    (metadata.deletionGracePeriodSeconds ?? 0) === 0 &&
    (metadata.finalizers?.length ?? 0) === 0
  );
}

function gracePeriodSeconds(type: ResourceType, object: KubeObject, options: DeleteOptions): number {
  if (type.kind !== 'Pod') return 0;
  const phase = at(object, 'status', 'phase');
  if (!at(object, 'spec', 'nodeName') || phase === 'Failed' || phase === 'Succeeded') return 0;
  const own = at(object, 'spec', 'terminationGracePeriodSeconds');
  return Math.max(0, options.gracePeriodSeconds ?? (typeof own === 'number' ? own : 30));
}

const COLLECTOR: Call = {
  user: { username: 'system:serviceaccount:kube-system:generic-garbage-collector', groups: ['system:authenticated'] },
  dryRun: false,
  warn: () => {},
};

const ownersOf = ({ metadata }: KubeObject) => (metadata.ownerReferences ?? []).map(({ uid }) => uid);

/** Deletes what only the deleted object owned, in the background; foreground and orphan count as background. */
export function collectGarbage(store: Store, registry: Registry, onFault: (error: unknown) => void): void {
  const isAlive = (uid: string) => [...store.all()].some(({ object }) => object.metadata.uid === uid);
  const dependentsOf = (uid: string) =>
    [...store.all()].filter(({ object }) => ownersOf(object).includes(uid) && !ownersOf(object).some(isAlive));

  const collect = async ({ object: { metadata } }: StoreChange) => {
    for (const { collection, object } of dependentsOf(metadata.uid ?? '')) {
      const type = typeOfCollection(collection);
      const { name, namespace, uid } = object.metadata;
      if (!type || uid === undefined) continue;
      try {
        await registry.delete({ type, namespace, name }, { preconditions: { uid } }, COLLECTOR);
      } catch (error) {
        if (!(error instanceof ApiError && error.http === 404)) throw error;
      }
    }
  };
  store.subscribe((change) => {
    if (change.type === 'DELETED') collect(change).catch(onFault);
  });
}
