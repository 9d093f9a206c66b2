import type { JsonObject } from '../objects.ts';
import { apiVersionOf, type ResourceType } from './resource-types.ts';
import { referenceTo } from './unknown-fields.ts';

/** kubectl leaves the validation of fields to the server only if it finds these. */
const WRITE_PARAMETERS = ['dryRun', 'fieldManager', 'fieldValidation'].map((name) => ({
  name,
  in: 'query',
  schema: { type: 'string', uniqueItems: true },
}));

const PATCH_FORMATS = ['application/json-patch+json', 'application/merge-patch+json', 'application/apply-patch+yaml'];
/** Custom resources do not support it. */
const STRATEGIC = 'application/strategic-merge-patch+json';

const ANY: JsonObject = { type: 'object' };

/** The paths of a type's collection and objects, limited to the parts that clients use. */
export function pathsOf(type: ResourceType, component: string): JsonObject {
  const { group, namespaced, plural } = type;
  const root = `/${group === '' ? 'api' : 'apis'}/${apiVersionOf(type)}`;
  const collection = `${root}${namespaced ? '/namespaces/{namespace}' : ''}/${plural}`;
  const operation = operations(type, component);
  return {
    ...(namespaced && { [`${root}/${plural}`]: { get: operation('list') } }),
    [collection]: { get: operation('list'), post: operation('post'), delete: operation('deletecollection') },
    [`${collection}/{name}`]: {
      get: operation('get'),
      put: operation('put'),
      patch: operation('patch'),
      delete: operation('delete'),
    },
  };
}

function operations({ group, version, kind, custom }: ResourceType, component: string) {
  const object = referenceTo(component);
  const patches = custom ? PATCH_FORMATS : [...PATCH_FORMATS, STRATEGIC];
  const bodies: Readonly<Record<string, JsonObject>> = {
    post: content(['application/json', 'application/yaml'], object),
    put: content(['application/json', 'application/yaml'], object),
    patch: content(patches, ANY),
  };
  return (action: string): JsonObject => ({
    ...(bodies[action] && { parameters: WRITE_PARAMETERS, requestBody: bodies[action] }),
    responses: { '200': { description: 'OK', ...content(['application/json'], object) } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': { group, version, kind },
  });
}

const content = (formats: readonly string[], schema: JsonObject): JsonObject => ({
  content: Object.fromEntries(formats.map((format) => [format, { schema }])),
});
