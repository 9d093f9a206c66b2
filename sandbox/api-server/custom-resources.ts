import { at, isObject, type Json, type JsonObject, type KubeObject } from '../objects.ts';
import { ANY, age } from './columns.ts';
import type { Column, ResourceCatalogue, ResourceType } from './resource-types.ts';
import { collectionOf } from './resource-types.ts';
import type { Store } from './store.ts';

/**
 * Serves the types of CustomResourceDefinitions while these exist: names, scope, the status subresource and printer
 * columns of the storage version. Of their schemas only field names are checked, if a client requests it; nothing is
 * pruned.
 */
export function registerCustomResources(store: Store, catalogue: ResourceCatalogue, definitions: ResourceType): void {
  const collection = collectionOf(definitions);
  store.subscribe((change) => {
    if (change.collection !== collection) return;
    const type = typeOf(change.object);
    if (!type) return;
    if (change.type === 'DELETED') catalogue.remove(type.group, type.plural);
    else catalogue.add(type);
  });
}

const NAME: Column = { name: 'Name', cell: ({ metadata }) => metadata.name };

function typeOf(definition: KubeObject): ResourceType | undefined {
  const { spec } = definition;
  if (!isObject(spec) || !isObject(spec.names) || !Array.isArray(spec.versions)) return undefined;
  const version = spec.versions.find((item) => isObject(item) && item.storage === true);
  if (!isObject(version)) return undefined;
  const { names } = spec;
  const schema = at(version, 'schema', 'openAPIV3Schema');
  const namespaced = spec.scope === 'Namespaced';
  const printed = Array.isArray(version.additionalPrinterColumns)
    ? version.additionalPrinterColumns.filter(isObject)
    : [];
  const field =
    (...path: string[]) =>
    (object: KubeObject) =>
      String(at(object, ...path) ?? '');
  return {
    group: String(spec.group),
    version: String(version.name),
    kind: String(names.kind),
    plural: String(names.plural),
    shortNames: texts(names.shortNames),
    categories: texts(names.categories),
    namespaced,
    hasStatus: at(version, 'subresources', 'status') !== undefined,
    custom: true,
    names: 'subdomain',
    fields: {
      'metadata.name': field('metadata', 'name'),
      ...(namespaced && { 'metadata.namespace': field('metadata', 'namespace') }),
    },
    columns: printed.length === 0 ? ANY : [NAME, ...printed.map(printerColumn)],
    ...(isObject(schema) && { schema }),
  };
}

/** A printer column whose path consists only of keys and indexes, such as `.spec.x` or `.status.conditions[0].type`. */
function printerColumn({ name, type, jsonPath, priority }: JsonObject): Column {
  const path = String(jsonPath)
    .replace(/\[(\d+)\]/g, '.$1')
    .split('.')
    .filter((key) => key !== '');
  const read = (object: KubeObject): Json | undefined =>
    path.reduce<Json | undefined>((here, key) => (Array.isArray(here) ? here[Number(key)] : at(here, key)), object);
  return {
    name: String(name),
    type: type === 'integer' ? 'integer' : 'string',
    priority: typeof priority === 'number' ? priority : 0,
    cell: (object, now) => {
      const value = read(object);
      if (type === 'date') return age(typeof value === 'string' ? value : undefined, now);
      return isObject(value) || Array.isArray(value) ? JSON.stringify(value) : (value ?? '');
    },
  };
}

const texts = (value: Json | undefined): string[] => (Array.isArray(value) ? value.map(String) : []);
