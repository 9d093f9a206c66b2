import { formatTime } from '../../model/lease/timing.ts';
import { at, type KubeObject } from '../objects.ts';
import {
  apiVersionOf,
  collectionOf,
  CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS,
  type ResourceType,
  typeOfCollection,
} from './built-in-types.ts';
import type { Call } from './call.ts';
import { CUSTOM_TYPES, definitionName } from './definitions.ts';
import { unlessNotFound } from './errors.ts';
import type { Registry } from './registry.ts';
import type { Store, StoreChange } from './store.ts';

/** Stores the definitions, accepts new ones, and deletes the objects of a deleted one, as the controllers do. */
export function followDefinitions(store: Store): void {
  store.subscribe(({ type: change, collection, key, object }) => {
    if (collection !== collectionOf(DEFINITIONS)) return;
    if (change === 'DELETED') empty(store, CUSTOM_TYPES.get(key));
    else if (at(object, 'status', 'conditions') === undefined) store.put(collection, key, accepted(object));
  });
  for (const [name, type] of CUSTOM_TYPES) store.put(collectionOf(DEFINITIONS), name, definitionOf(type));
}

function empty(store: Store, type: ResourceType | undefined): void {
  const collection = type && collectionOf(type);
  for (const entry of [...store.all()]) if (entry.collection === collection) store.remove(collection, entry.key);
}

function accepted(definition: KubeObject): KubeObject {
  const lastTransitionTime = formatTime(Date.now());
  const conditions = ['NamesAccepted', 'Established'].map((type) => ({ type, status: 'True', lastTransitionTime }));
  const acceptedNames = at(definition, 'spec', 'names') ?? {};
  const storedVersions = [CUSTOM_TYPES.get(definition.metadata.name)?.version ?? ''];
  return { ...definition, status: { conditions, acceptedNames, storedVersions } };
}

function definitionOf(type: ResourceType): KubeObject {
  const { group, version, kind, plural, namespaced, hasStatus } = type;
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const subresources = hasStatus ? { subresources: { status: {} } } : {};
  return {
    apiVersion: apiVersionOf(DEFINITIONS),
    kind: DEFINITIONS.kind,
    metadata: { name: definitionName(type), creationTimestamp: formatTime(Date.now()) },
    spec: {
      group,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), shortNames: [...type.shortNames] },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      versions: [{ name: version, served: true, storage: true, schema, ...subresources }],
    },
  };
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
      await registry.delete({ type, namespace, name }, { preconditions: { uid } }, COLLECTOR).catch(unlessNotFound);
    }
  };
  store.subscribe((change) => {
    if (change.type === 'DELETED') collect(change).catch(onFault);
  });
}
