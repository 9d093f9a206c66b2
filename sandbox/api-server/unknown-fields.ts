import { isObject, type Json, type JsonObject } from '../objects.ts';

const REFERENCE = '#/components/schemas/';

/** The component that a schema refers to, directly or through the only member of its allOf; undefined: none. */
export function referenceOf(schema: JsonObject): string | undefined {
  const [only] = Array.isArray(schema.allOf) ? schema.allOf : [];
  const reference = schema.$ref ?? (isObject(only) ? only.$ref : undefined);
  return typeof reference === 'string' ? reference.slice(REFERENCE.length) : undefined;
}

export const referenceTo = (component: string): JsonObject => ({ $ref: `${REFERENCE}${component}` });

/**
 * Paths of fields that a schema does not have, in the API server's format: `spec.containers[0].imge`. A schema without
 * properties accepts any content.
 */
export function unknownFields(object: Json, schema: JsonObject, components: Components): string[] {
  return below(object, schema, '', components);
}

type Components = Readonly<Record<string, JsonObject>>;

function below(value: Json | undefined, given: JsonObject, path: string, components: Components): string[] {
  const schema = components[referenceOf(given) ?? ''] ?? given;
  if (Array.isArray(value)) {
    const { items } = schema;
    if (!isObject(items)) return [];
    return value.flatMap((item, index) => below(item, items, `${path}[${index}]`, components));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const at = path === '' ? key : `${path}.${key}`;
    const known = schemaOfField(schema, key);
    if (known === 'none') return [at];
    return known === 'any' ? [] : below(item, known, at, components);
  });
}

/** `any`: the schema accepts any content there; `none`: the field does not exist. */
function schemaOfField({ properties, additionalProperties: others, ...schema }: JsonObject, key: string) {
  if (isObject(properties) && Object.hasOwn(properties, key)) {
    const own = properties[key];
    return isObject(own) ? own : 'any';
  }
  if (isObject(others)) return others;
  return !isObject(properties) || schema['x-kubernetes-preserve-unknown-fields'] === true ? 'any' : 'none';
}
