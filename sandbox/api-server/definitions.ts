import { at, type KubeObject } from '../objects.ts';
import {
  apiVersionOf,
  BUILT_IN_TYPES,
  collectionOf,
  CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS,
  type ResourceType,
} from './built-in-types.ts';
import { requiredValue, type StatusCause } from './errors.ts';
import { timestamp } from './preparation.ts';
import type { Store, StoreChange } from './store.ts';

const nameOf = ({ plural, group }: ResourceType) => `${plural}.${group}`;

const CUSTOM_TYPES = new Map(BUILT_IN_TYPES.filter(({ custom }) => custom).map((type) => [nameOf(type), type]));

/** A custom type is served while its definition exists. */
export function isServed(store: Store, type: ResourceType): boolean {
  return !type.custom || store.get(collectionOf(DEFINITIONS), nameOf(type)) !== undefined;
}

export const servedTypes = (store: Store) => BUILT_IN_TYPES.filter((type) => isServed(store, type));

/** Whether a change is the deletion of a type's definition. */
export function endsType(change: StoreChange, type: ResourceType): boolean {
  return change.type === 'DELETED' && change.collection === collectionOf(DEFINITIONS) && change.key === nameOf(type);
}

/** The types of custom resources are part of this server. */
export function definitionCauses({ metadata: { name } }: KubeObject): StatusCause[] {
  if (CUSTOM_TYPES.has(name)) return [];
  return [requiredValue('metadata.name', `the embedded API server only has ${[...CUSTOM_TYPES.keys()].join(', ')}`)];
}

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
  if (type === undefined) return;
  const collection = collectionOf(type);
  for (const { collection: entryCollection, key } of [...store.all()])
    if (entryCollection === collection) store.remove(collection, key);
}

function accepted(definition: KubeObject): KubeObject {
  const lastTransitionTime = timestamp(Date.now());
  const conditions = ['NamesAccepted', 'Established'].map((type) => ({ type, status: 'True', lastTransitionTime }));
  const acceptedNames = at(definition, 'spec', 'names') ?? {};
  return {
    ...definition,
    status: { conditions, acceptedNames, storedVersions: [CUSTOM_TYPES.get(definition.metadata.name)?.version ?? ''] },
  };
}

function definitionOf(type: ResourceType): KubeObject {
  const { group, version, kind, plural, namespaced, hasStatus } = type;
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const subresources = hasStatus ? { subresources: { status: {} } } : {};
  return {
    apiVersion: apiVersionOf(DEFINITIONS),
    kind: DEFINITIONS.kind,
    metadata: { name: nameOf(type), creationTimestamp: timestamp(Date.now()) },
    spec: {
      group,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), shortNames: [...type.shortNames] },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      versions: [{ name: version, served: true, storage: true, schema, ...subresources }],
    },
  };
}
