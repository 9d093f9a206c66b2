import type { KubeObject } from '../objects.ts';
import { typeOfCollection } from './built-in-types.ts';
import type { Call } from './calls.ts';
import { ApiError } from './errors.ts';
import type { Registry } from './registry.ts';
import type { Change, Store } from './store.ts';

export interface GarbageDeps {
  readonly store: Store;
  readonly registry: Registry;
  readonly onFault: (error: unknown) => void;
}

const COLLECTOR: Call = {
  user: { username: 'system:serviceaccount:kube-system:generic-garbage-collector', groups: ['system:authenticated'] },
  dryRun: false,
  warn: () => {},
};

/**
 * Deletes the dependents of a deleted object: everything whose ownerReferences contain its uid and no other existing
 * object. Background deletion only; the policies foreground and orphan count as background.
 */
export function collectGarbage({ store, registry, onFault }: GarbageDeps): void {
  const isAlive = (uid: string) => [...store.all()].some(({ object }) => object.metadata.uid === uid);
  const dependentsOf = (uid: string) =>
    [...store.all()].filter(({ object }) => ownersOf(object).includes(uid) && !ownersOf(object).some(isAlive));

  const collect = async ({ object: { metadata } }: Change) => {
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

const ownersOf = ({ metadata }: KubeObject) => (metadata.ownerReferences ?? []).map(({ uid }) => uid);
