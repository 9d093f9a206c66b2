import type { KubeObject } from '../objects.ts';
import {
  BUILT_IN_TYPES,
  collectionOf,
  CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS,
  type ResourceType,
} from './built-in-types.ts';
import { requiredValue, type StatusCause } from './errors.ts';
import type { Store, StoreChange } from './store.ts';

export const definitionName = ({ plural, group }: ResourceType) => `${plural}.${group}`;

/** By the names of their definitions. */
export const CUSTOM_TYPES: ReadonlyMap<string, ResourceType> = new Map(
  BUILT_IN_TYPES.filter(({ custom }) => custom).map((type) => [definitionName(type), type]),
);

/** A custom type is served while its definition exists. */
export function isServed(store: Store, type: ResourceType): boolean {
  return !type.custom || store.get(collectionOf(DEFINITIONS), definitionName(type)) !== undefined;
}

export const servedTypes = (store: Store) => BUILT_IN_TYPES.filter((type) => isServed(store, type));

/** Whether a change is the deletion of a type's definition. */
export function endsType({ type: change, collection, key }: StoreChange, type: ResourceType): boolean {
  return change === 'DELETED' && collection === collectionOf(DEFINITIONS) && key === definitionName(type);
}

/** The types of custom resources are part of this server. */
export function definitionCauses({ metadata: { name } }: KubeObject): StatusCause[] {
  if (CUSTOM_TYPES.has(name)) return [];
  return [requiredValue('metadata.name', `the embedded API server only has ${[...CUSTOM_TYPES.keys()].join(', ')}`)];
}
