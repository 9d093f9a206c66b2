import type { JsonObject, KubeObject } from '../objects.ts';
import { apiVersionOf, NAMESPACES } from './built-in-types.ts';
import { methodNotAllowed, noSuchPath } from './errors.ts';
import { includeOf, listPage, tableOf, wantsTable } from './list.ts';
import type { Target } from './registry.ts';
import {
  boundedWarnings,
  type Call,
  contentType,
  type Exchange,
  type HandlerDeps,
  readBody,
  readDeleteOptions,
  readDryRun,
  readFieldValidation,
  readSelectors,
  sendJson,
  warningHeader,
} from './requests.ts';
import type { Predicate } from './selectors.ts';
import type { Store } from './store.ts';
import { assertAcceptsAnything, bindPod, evictPod, unpauseInstance } from './subresources.ts';
import { streamWatch } from './watch.ts';

/**
 * Handles a request on a resource and returns the warnings of its webhooks.
 * @throws ApiError; the caller converts it into a Status
 */
export async function handleResource(deps: HandlerDeps, exchange: Exchange): Promise<void> {
  const { request, response, route, user, query } = exchange;
  const warnings: string[] = [];
  const fieldManager = query.get('fieldManager');
  const fieldValidation = readFieldValidation(query);
  const call: Call = {
    user,
    dryRun: readDryRun(query),
    ...(fieldManager && { fieldManager }),
    ...(fieldValidation && { fieldValidation }),
    warn: (text) => void warnings.push(text),
  };
  try {
    const answer =
      route.name === undefined
        ? await handleCollection(deps, exchange, call)
        : await handleObject(deps, exchange, { ...route, name: route.name }, call);
    if (answer) {
      setWarnings(exchange, warnings);
      sendJson(response, answer.status, shaped(deps, exchange, answer));
    }
  } catch (error) {
    setWarnings(exchange, warnings);
    throw error;
  } finally {
    // An unread body would precede the next request on this connection.
    request.resume();
  }
}

function setWarnings({ response }: Exchange, warnings: readonly string[]): void {
  if (warnings.length === 0 || response.headersSent) return;
  response.setHeader('warning', boundedWarnings(warnings).map(warningHeader));
}

/** One object in the form that the client requested: the object, or a Table with one row. */
function shaped(deps: HandlerDeps, { request, route, query }: Exchange, { body }: Answer) {
  if (body.kind !== route.type.kind || !wantsTable(request.headers.accept)) return body;
  const object = body as KubeObject;
  const metadata = { resourceVersion: object.metadata.resourceVersion ?? '' };
  return tableOf(route.type, [object], metadata, includeOf(query), deps.now());
}

/**
 * Handles a request on a collection. Lists and watches write their own response and return undefined.
 * @throws ApiError
 */
async function handleCollection(deps: HandlerDeps, exchange: Exchange, call: Call): Promise<Answer | undefined> {
  const { request, route, query } = exchange;
  const { type, namespace } = route;
  switch (request.method) {
    case 'GET': {
      const matches = readSelectors(exchange);
      const watch = query.get('watch');
      if (watch === 'true' || watch === '1') streamWatch(deps, exchange, matches);
      else list(deps, exchange, matches);
      return undefined;
    }
    case 'POST': {
      if (type.namespaced && namespace === undefined) throw methodNotAllowed();
      const body = (await readBody(request)) ?? null;
      return { status: 201, body: await deps.registry.create(type, namespace, body, call) };
    }
    case 'DELETE': {
      const options = await readDeleteOptions(exchange);
      const { items } = listPage(deps.store, type, { namespace, matches: readSelectors(exchange) });
      for (const { metadata } of items) {
        await deps.registry.delete({ type, namespace: metadata.namespace, name: metadata.name }, options, call);
      }
      return { status: 200, body: success() };
    }
    default:
      throw methodNotAllowed();
  }
}

function list(deps: HandlerDeps, { route, query, response, request }: Exchange, matches: Predicate): void {
  const { type, namespace } = route;
  const token = query.get('continue') ?? undefined;
  const page = listPage(deps.store, type, { namespace, matches, token, limit: Number(query.get('limit') ?? 0) });
  const metadata = {
    resourceVersion: String(page.version),
    ...(page.token !== undefined && { continue: page.token }),
    ...(page.remaining !== undefined && { remainingItemCount: page.remaining }),
  };
  if (wantsTable(request.headers.accept)) {
    sendJson(response, 200, tableOf(type, page.items, metadata, includeOf(query), deps.now()));
    return;
  }
  const items = page.items as KubeObject[];
  sendJson(response, 200, { kind: `${type.kind}List`, apiVersion: apiVersionOf(type), metadata, items });
}

interface Answer {
  readonly status: number;
  readonly body: KubeObject | JsonObject;
}

const success = (details?: JsonObject): JsonObject => ({
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
async function handleObject(deps: HandlerDeps, exchange: Exchange, target: Target, call: Call): Promise<Answer> {
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
