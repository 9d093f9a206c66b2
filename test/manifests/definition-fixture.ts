import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from '../support/bundles.ts';

export interface Schema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly string[];
  readonly format?: string;
  readonly maxItems?: number;
  readonly maxLength?: number;
  readonly maxProperties?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'map' | 'set';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular';
}

export interface Definition {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

export const NODE_TOPOLOGIES = parse(
  readFileSync(join(root, 'manifests/base/crd/nodetopologies.yaml'), 'utf8'),
) as Definition;

export const SCHEMAS: readonly Schema[] = NODE_TOPOLOGIES.spec.versions.map(({ schema }) => schema.openAPIV3Schema);

export interface Place {
  /** `.status.cells[].cpus`; `{}` for the values of a map. */
  readonly path: string;
  readonly schema: Schema;
}

/** Fields that the API server describes and limits itself. */
const STANDARD = ['.apiVersion', '.kind', '.metadata'];

export function placesOf(schema: Schema, path = ''): Place[] {
  const below: [string, Schema][] = [
    ...Object.entries(schema.properties ?? {}).map(([name, property]): [string, Schema] => [
      `${path}.${name}`,
      property,
    ]),
    ...(schema.items ? [[`${path}[]`, schema.items] as [string, Schema]] : []),
    ...(schema.additionalProperties ? [[`${path}{}`, schema.additionalProperties] as [string, Schema]] : []),
  ];
  return below
    .filter(([at]) => !STANDARD.includes(at))
    .flatMap(([at, place]) => [{ path: at, schema: place }, ...placesOf(place, at)]);
}

export function unbounded({ type, ...schema }: Schema): string | undefined {
  switch (type) {
    case 'string':
      return schema.enum === undefined && schema.maxLength === undefined ? 'no maxLength' : undefined;
    case 'array':
      return schema.maxItems === undefined ? 'no maxItems' : undefined;
    case 'integer':
      return schema.minimum === undefined || schema.maximum === undefined ? 'no minimum and maximum' : undefined;
    case 'object':
      if (schema.additionalProperties) return schema.maxProperties === undefined ? 'no maxProperties' : undefined;
      return schema.properties ? undefined : 'no properties';
    case 'boolean':
      return undefined;
    default:
      return `unexpected type ${String(type)}`;
  }
}
