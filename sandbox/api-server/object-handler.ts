import type { JsonObject, KubeObject } from '../objects.ts';
import { NAMESPACES } from './built-in-types.ts';
import type { Call } from './calls.ts';
import { methodNotAllowed, noSuchPath } from './errors.ts';
import { contentType, readBody } from './http.ts';
import type { Target } from './registry.ts';
import { type Exchange, type HandlerDeps, readDeleteOptions } from './request-options.ts';
import type { Store } from './store.ts';
import { assertAcceptsAnything, bindPod, evictPod, unpauseInstance } from './subresources.ts';

export interface Answer {
  readonly status: number;
  readonly body: KubeObject | JsonObject;
}

export const success = (details?: JsonObject): JsonObject => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  ...(details && { details }),
  code: 200,
});

/**
 * Handles a request on one object or its subresource.
 * @throws ApiError
 */
export async function handleObject(deps: HandlerDeps, exchange: Exchange, target: Target, call: Call): Promise<Answer> {
  const { request, route } = exchange;
  const { registry } = deps;
  const { type, subresource } = route;
  if (type.kind === 'Pod' && (subresource === 'binding' || subresource === 'eviction')) {
    return handlePodSubresource(deps, exchange, target, call);
  }
  if (type.kind === 'VirtualMachineInstance' && subresource === 'unpause') {
    if (request.method !== 'PUT') throw methodNotAllowed();
    assertAcceptsAnything(request);
    await unpauseInstance(registry, { ...target, subresource: '' }, call);
    return { status: 202, body: success() };
  }
  if (subresource !== '' && !(subresource === 'status' && type.hasStatus)) throw noSuchPath();
  switch (request.method) {
    case 'GET':
      return { status: 200, body: registry.get(target) };
    case 'PUT':
      return { status: 200, body: await registry.update(target, (await readBody(request)) ?? null, call) };
    case 'PATCH': {
      const patch = (await readBody(request)) ?? null;
      return { status: 200, body: await registry.patch(target, contentType(request), patch, call) };
    }
    case 'DELETE':
      if (subresource !== '') throw methodNotAllowed();
      return handleDelete(deps, exchange, target, call);
    default:
      throw methodNotAllowed();
  }
}

async function handlePodSubresource(
  { registry, now }: HandlerDeps,
  { request, route }: Exchange,
  target: Target,
  call: Call,
): Promise<Answer> {
  if (request.method !== 'POST') throw methodNotAllowed();
  const body = (await readBody(request)) ?? null;
  if (route.subresource === 'binding') await bindPod(registry, target, body, call, now());
  else await evictPod(registry, { ...target, subresource: '' }, body, call);
  return { status: 201, body: success() };
}

async function handleDelete(deps: HandlerDeps, exchange: Exchange, target: Target, call: Call): Promise<Answer> {
  const { type, name } = target;
  const options = await readDeleteOptions(exchange);
  const { object, gone } = await deps.registry.delete(target, options, call);
  if (type.kind === NAMESPACES.kind && type.group === '' && gone && !call.dryRun) emptyNamespace(deps.store, name);
  // The response contains the object if it is a pod or only marked for deletion.
  if (!gone || type.kind === 'Pod') return { status: 200, body: object };
  const { uid = '' } = object.metadata;
  const details = { name, kind: type.plural, uid, ...(type.group !== '' && { group: type.group }) };
  return { status: 200, body: success(details) };
}

/** Deletes everything in a namespace. The real server does this over time; here it happens at once. */
function emptyNamespace(store: Store, namespace: string): void {
  for (const { collection, key, object } of [...store.all()]) {
    if (object.metadata.namespace === namespace) store.remove(collection, key);
  }
}
