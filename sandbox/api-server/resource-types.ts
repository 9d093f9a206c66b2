import type { Json, JsonObject, KubeObject } from '../objects.ts';
import { BUILT_IN_TYPES } from './built-in-types.ts';

/** A column of `kubectl get`. `priority` 1 shows with `-o wide` only. */
export interface Column {
  readonly name: string;
  readonly type?: string;
  readonly priority?: number;
  cell(object: KubeObject, now: number): Json;
}

/** One resource that the server serves, in one version. `T` is the view its objects are read through. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Whether status is written through /status only. */
  readonly hasStatus: boolean;
  /** Whether a CustomResourceDefinition stands behind it: such objects know no strategic merge patch. */
  readonly custom: boolean;
  /** The rule that names must keep. */
  readonly names: 'subdomain' | 'label';
  /** What field selectors may ask for. */
  readonly fields: Readonly<Record<string, (object: KubeObject) => string>>;
  readonly columns: readonly Column[];
  /** Of the CustomResourceDefinition in the cluster that makes it. */
  readonly schema?: JsonObject;
  /** Never there; carries the view's type. */
  readonly view?: T;
}

export const apiVersionOf = ({ group, version }: Pick<ResourceType, 'group' | 'version'>) =>
  group === '' ? version : `${group}/${version}`;

/** The name of the store's collection that holds a resource. */
export const collectionOf = ({ group, plural }: Pick<ResourceType, 'group' | 'plural'>) => `${group}/${plural}`;

/** The resources that are served: the built-in ones, and what CustomResourceDefinitions add. */
export interface ResourceCatalogue {
  all(): readonly ResourceType[];
  find(group: string, version: string, plural: string): ResourceType | undefined;
  findKind(apiVersion: string, kind: string): ResourceType | undefined;
  findCollection(collection: string): ResourceType | undefined;
  /** Adds a resource, or replaces the one of the same group and plural. */
  add(type: ResourceType): void;
  remove(group: string, plural: string): void;
}

export function createResourceCatalogue(): ResourceCatalogue {
  const types = new Map(BUILT_IN_TYPES.map((type) => [collectionOf(type), type]));
  const search = (test: (type: ResourceType) => boolean) => [...types.values()].find(test);
  return {
    all: () => [...types.values()],
    find: (group, version, plural) => {
      const type = types.get(`${group}/${plural}`);
      return type?.version === version ? type : undefined;
    },
    findKind: (apiVersion, kind) => search((type) => type.kind === kind && apiVersionOf(type) === apiVersion),
    findCollection: (collection) => types.get(collection),
    add: (type) => void types.set(collectionOf(type), type),
    remove: (group, plural) => void types.delete(`${group}/${plural}`),
  };
}
