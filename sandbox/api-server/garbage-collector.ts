import type { KubeObject } from '../objects.ts';
import { typeOfCollection } from './built-in-types.ts';
import type { Call } from './call.ts';
import { ApiError } from './errors.ts';
import type { Registry } from './registry.ts';
import type { Store, StoreChange } from './store.ts';

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
