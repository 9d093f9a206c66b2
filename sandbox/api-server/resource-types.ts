import type { Json, KubeObject } from '../objects.ts';

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
  /** Paths of the fields that field selectors support. */
  readonly fields: readonly string[];
  readonly columns: readonly Column[];
  /** Never set; carries the type of the view. */
  readonly view?: T;
}

export const apiVersionOf = ({ group, version }: Pick<ResourceType, 'group' | 'version'>) =>
  group === '' ? version : `${group}/${version}`;

/** Name of the collection in the store that contains a resource. */
export const collectionOf = ({ group, plural }: Pick<ResourceType, 'group' | 'plural'>) => `${group}/${plural}`;
