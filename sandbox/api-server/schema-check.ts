import { at, isRecord, type JsonRecord, type JsonValue, listAt } from '../objects.ts';
import type { StatusCause } from './errors.ts';

/** Schemas with the names that they have in the documents of a real API server. */
export type Components = Readonly<Record<string, JsonRecord>>;

export const REFERENCE = '#/components/schemas/';

/** The component that a schema refers to, directly or through the only member of its allOf; undefined: none. */
export function referenceOf(schema: JsonRecord): string | undefined {
  const [only] = listAt(schema, 'allOf');
  const reference = schema.$ref ?? at(only, '$ref');
  return typeof reference === 'string' ? reference.slice(REFERENCE.length) : undefined;
}

export interface SchemaFault {
  readonly kind: 'unknown' | 'type' | 'required' | 'enum';
  /** In the API server's format: `spec.containers[0].image`. */
  readonly path: string;
  readonly actual: string;
  readonly expected: string;
}

const isOfType = (value: JsonValue, type: string) =>
  typeOf(value) === type || (type === 'number' && typeof value === 'number');

/** Schema without properties: any content. Null: absent, as in Go. */
export function schemaFaults(
  value: JsonValue | undefined,
  reference: JsonRecord,
  components: Components,
  path = '',
): SchemaFault[] {
  if (value === undefined || value === null) return [];
  const schema = components[referenceOf(reference) ?? ''] ?? reference;
  const { items, enum: allowed } = schema;
  const actual = typeOf(value);
  const fault = (kind: SchemaFault['kind'], expected: string, at = path) => [{ kind, path: at, actual, expected }];
  const types = typesOf(schema);
  if (types.length > 0 && !types.some((type) => isOfType(value, type))) return fault('type', types.join(' or '));
  if (Array.isArray(allowed) && !allowed.includes(value)) {
    return fault('enum', allowed.map((member) => JSON.stringify(member)).join(', '));
  }
  if (Array.isArray(value)) {
    if (!isRecord(items)) return [];
    return value.flatMap((item, index) => schemaFaults(item, items, components, `${path}[${index}]`));
  }
  if (!isRecord(value)) return [];
  const inside = (key: string) => (path === '' ? key : `${path}.${key}`);
  const missing = listAt(schema, 'required').filter((key) => value[String(key)] === undefined);
  const fields = Object.entries(value).flatMap(([key, item]) => {
    const declared = schemaOfField(schema, key);
    if (declared === 'none') return fault('unknown', '', inside(key));
    return declared === 'any' ? [] : schemaFaults(item, declared, components, inside(key));
  });
  return [...missing.flatMap((key) => fault('required', '', inside(String(key)))), ...fields];
}

/** The error of a custom resource. Source: k8s.io/kube-openapi/pkg/validation/errors/schema.go */
export function causeOf({ kind, path: field, actual, expected }: SchemaFault): StatusCause {
  if (kind === 'required') return { reason: 'FieldValueRequired', field, message: 'Required value' };
  if (kind === 'enum') {
    return { reason: 'FieldValueNotSupported', field, message: `Unsupported value: supported values: ${expected}` };
  }
  const message = `Invalid value: "${actual}": ${field} in body must be of type ${expected}: "${actual}"`;
  return { reason: 'FieldValueTypeInvalid', field, message };
}

function typesOf(schema: JsonRecord): string[] {
  if (schema['x-kubernetes-int-or-string'] === true) return ['integer', 'string'];
  const choices = [schema, ...listAt(schema, 'oneOf'), ...listAt(schema, 'anyOf')];
  return choices.map((choice) => at(choice, 'type')).filter((type) => typeof type === 'string');
}

function typeOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

/** `any`: the schema accepts any content there; `none`: the field does not exist. */
function schemaOfField({ properties, additionalProperties: others, ...schema }: JsonRecord, key: string) {
  if (isRecord(properties) && Object.hasOwn(properties, key)) {
    const property = properties[key];
    return isRecord(property) ? property : 'any';
  }
  if (isRecord(others)) return others;
  return !isRecord(properties) || schema['x-kubernetes-preserve-unknown-fields'] === true ? 'any' : 'none';
}
