import type { Json, JsonObject, KubeObject } from '../objects.ts';
import { BUILT_IN_TYPES } from './built-in-types.ts';

/** A column of `kubectl get`. Columns with `priority` 1 only appear with `-o wide`. */
export interface Column {
  readonly name: string;
  readonly type?: string;
  readonly priority?: number;
  cell(object: KubeObject, now: number): Json;
}

/** One served resource in one version. `T` is the typed view of its objects. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Whether only /status can write the status. */
  readonly hasStatus: boolean;
  /** Whether it comes from a CustomResourceDefinition. Such objects do not support strategic merge patches. */
  readonly custom: boolean;
  /** The format of names. */
  readonly names: 'subdomain' | 'label';
  /** The fields that field selectors support. */
  readonly fields: Readonly<Record<string, (object: KubeObject) => string>>;
  readonly columns: readonly Column[];
  /** Schema of its CustomResourceDefinition in the cluster. */
  readonly schema?: JsonObject;
  /** Never set; carries the type of the view. */
  readonly view?: T;
}

export const apiVersionOf = ({ group, version }: Pick<ResourceType, 'group' | 'version'>) =>
  group === '' ? version : `${group}/${version}`;

/** Name of the collection in the store that contains a resource. */
export const collectionOf = ({ group, plural }: Pick<ResourceType, 'group' | 'plural'>) => `${group}/${plural}`;

/** The served resources: the built-in ones and those of CustomResourceDefinitions. */
export interface ResourceCatalogue {
  all(): readonly ResourceType[];
  find(group: string, version: string, plural: string): ResourceType | undefined;
  findKind(apiVersion: string, kind: string): ResourceType | undefined;
  findCollection(collection: string): ResourceType | undefined;
  /** Adds a resource, or replaces the one with the same group and plural. */
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
