import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isRecord, type JsonRecord, type KubeObject, listAt } from '../objects.ts';
import { apiVersionOf, BUILT_IN_TYPES, type ResourceType } from './built-in-types.ts';
import { type Components, REFERENCE, referenceOf, schemaFaults } from './schema-check.ts';

export type OpenApi = ReturnType<typeof createOpenApi>;

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
const ROOT = '/openapi/v3';

/** What test/sandbox/api-server/generate.ts wrote. @throws Error if it is missing; `npm run build` copies it */
export async function readComponents(path: string): Promise<Components> {
  return JSON.parse(await readFile(path, 'utf8')) as Components;
}

const apiVersionAt = (path: string) => path.slice(path.indexOf('/') + 1);

/** @param published schemas of types; a type without one accepts any fields */
export function createOpenApi(published: Components) {
  const kinds = new Map<string, string>();
  for (const [name, schema] of Object.entries(published)) {
    for (const { group, version, kind } of listAt(schema, 'x-kubernetes-group-version-kind').filter(isRecord)) {
      kinds.set(`${group}/${version}/${kind}`, name);
    }
  }

  const componentOf = ({ group, version, kind }: ResourceType) =>
    kinds.get(`${group}/${version}/${kind}`) ?? [...group.split('.').reverse(), version, kind].join('.');
  const schemaOf = (type: ResourceType): JsonRecord => published[componentOf(type)] ?? openSchema(type);

  const withReferences = (types: readonly ResourceType[]): JsonRecord => {
    const schemas: JsonRecord = {};
    const add = (name: string, schema: JsonRecord | undefined): void => {
      if (schema === undefined || schemas[name] !== undefined) return;
      schemas[name] = schema;
      for (const reference of referencesIn(schema)) add(reference, published[reference]);
    };
    for (const type of types) add(componentOf(type), schemaOf(type));
    return schemas;
  };

  const documentOf = (apiVersion: string): JsonRecord | undefined => {
    const types = BUILT_IN_TYPES.filter((type) => apiVersionOf(type) === apiVersion);
    if (types.length === 0) return undefined;
    return {
      openapi: '3.0.0',
      info: { title: 'Kubernetes', version: 'sandbox' },
      paths: Object.assign({}, ...types.map(pathsOf)) as JsonRecord,
      components: { schemas: withReferences(types) },
    };
  };

  const index = (): JsonRecord => {
    const paths = new Set(BUILT_IN_TYPES.map((type) => `${type.group === '' ? 'api' : 'apis'}/${apiVersionOf(type)}`));
    const entries = [...paths].map((path) => {
      const document = JSON.stringify(documentOf(apiVersionAt(path)));
      const hash = createHash('sha256').update(document).digest('hex').toUpperCase();
      return [path, { serverRelativeURL: `${ROOT}/${path}?hash=${hash}` }] as const;
    });
    return { paths: Object.fromEntries(entries) };
  };

  return {
    /** The index at /openapi/v3, or the document of a group and version below it; undefined for any other path. */
    document(path: string) {
      if (path === ROOT) return index();
      return path.startsWith(`${ROOT}/`) ? documentOf(apiVersionAt(path.slice(ROOT.length + 1))) : undefined;
    },
    faults: (type: ResourceType, object: KubeObject) => schemaFaults(object, schemaOf(type), published),
  };
}

const referenceTo = (component: string): JsonRecord => ({ $ref: `${REFERENCE}${component}` });

function openSchema({ group, version, kind }: ResourceType): JsonRecord {
  return {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
    properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: referenceTo(META) },
    'x-kubernetes-group-version-kind': [{ group, version, kind }],
  };
}

/** The components to which a schema refers, directly and inside. */
export function referencesIn(schema: JsonRecord): string[] {
  const reference = referenceOf(schema);
  const inside = Object.values(schema).flat().filter(isRecord).flatMap(referencesIn);
  return reference === undefined ? inside : [reference, ...inside];
}

/** kubectl leaves the validation of fields to the server only if it finds these. */
const WRITE_PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation'].map((name) => ({
  name,
  in: 'query',
  schema: { type: 'string', uniqueItems: true },
}));

function pathsOf(type: ResourceType): JsonRecord {
  const { group, namespaced, plural } = type;
  const root = `/${group === '' ? 'api' : 'apis'}/${apiVersionOf(type)}`;
  const collection = `${root}${namespaced ? '/namespaces/{namespace}' : ''}/${plural}`;
  const operation = operations(type);
  return {
    ...(namespaced && { [`${root}/${plural}`]: { get: operation('list') } }),
    [collection]: { get: operation('list'), post: operation('post') },
    [`${collection}/{name}`]: {
      get: operation('get'),
      put: operation('put'),
      patch: operation('patch'),
      delete: operation('delete'),
    },
  };
}

function operations({ group, version, kind }: ResourceType) {
  return (action: string): JsonRecord => ({
    ...(['post', 'put', 'patch'].includes(action) && { parameters: WRITE_PARAMETERS }),
    responses: { '200': { description: 'OK' } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, version, kind },
  });
}
