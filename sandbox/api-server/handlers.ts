import type { JsonRecord, KubeObject, KubePod } from '../objects.ts';
import { apiVersionOf, NAMESPACES } from './built-in-types.ts';
import type { Call, Target } from './call.ts';
import { methodNotAllowed, noSuchPath } from './errors.ts';
import { includeOf, pageOf, tableOf, validateListOptions, wantsTable } from './list.ts';
import { streamLog } from './pod-log.ts';
import {
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
import { assertAcceptsAnything, bindPod, evictPod, migrateMachine, unpauseInstance } from './subresources.ts';
import { WatchStream } from './watch.ts';

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
  let answer: Answer | undefined;
  try {
    answer =
      route.name === undefined
        ? await handleCollection(deps, exchange, call)
        : await handleObject(deps, exchange, { ...route, name: route.name }, call);
  } finally {
    if (warnings.length > 0 && !response.headersSent) response.setHeader('warning', warnings.map(warningHeader));
    // An unread body would precede the next request on this connection.
    request.resume();
  }
  if (answer === undefined) return;
  const { status, body } = answer;
  if (body.kind !== route.type.kind || !wantsTable(request.headers.accept)) return sendJson(response, status, body);
  const object = body as KubeObject;
  const metadata = { resourceVersion: object.metadata.resourceVersion ?? '' };
  sendJson(response, status, tableOf(route.type, [object], metadata, includeOf(query)));
}

const success = (details?: JsonRecord): JsonRecord => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  ...(details && { details }),
  code: 200,
});

async function handleCollection(deps: HandlerDeps, exchange: Exchange, call: Call): Promise<Answer | undefined> {
  const { request, route, query } = exchange;
  const { type, namespace } = route;
  switch (request.method) {
    case 'GET': {
      const matches = readSelectors(exchange);
      const isWatch = query.get('watch') === 'true' || query.get('watch') === '1';
      validateListOptions(query, isWatch);
      if (!isWatch) return list(deps, exchange, matches);
      new WatchStream(deps, exchange, matches);
      return undefined;
    }
    case 'POST': {
      if (type.namespaced && namespace === undefined) throw methodNotAllowed();
      const body = await readBody(request);
      return { status: 201, body: await deps.registry.create(type, namespace, body, call) };
    }
    default:
      throw methodNotAllowed();
  }
}

function list(deps: HandlerDeps, exchange: Exchange, matches: Predicate): Answer {
  const { request, query } = exchange;
  const { type } = exchange.route;
  const { items, metadata } = pageOf(deps.store, exchange, matches);
  const body = wantsTable(request.headers.accept)
    ? tableOf(type, items, metadata, includeOf(query))
    : { kind: `${type.kind}List`, apiVersion: apiVersionOf(type), metadata, items };
  return { status: 200, body };
}

interface Answer {
  readonly status: number;
  readonly body: KubeObject | JsonRecord;
}

type SubresourceHandler = typeof handleObject;

/** By kind and name; each gets the target of its object. */
const SUBRESOURCE_HANDLERS = new Map<string, SubresourceHandler>([
  ['Pod/log', handleLog],
  ['Pod/binding', handleBinding],
  ['Pod/eviction', handleEviction],
  ['VirtualMachineInstance/unpause', handleUnpause],
  ['VirtualMachine/migrate', handleMigrate],
]);

async function handleLog(deps: HandlerDeps, exchange: Exchange, target: Target): Promise<undefined> {
  assertMethod(exchange, 'GET');
  await streamLog(deps, exchange, deps.registry.get(target) as KubePod);
}

async function handleBinding(deps: HandlerDeps, exchange: Exchange, target: Target, call: Call): Promise<Answer> {
  assertMethod(exchange, 'POST');
  await bindPod(deps.registry, target, await readBody(exchange.request), call);
  return { status: 201, body: success() };
}

async function handleEviction(deps: HandlerDeps, exchange: Exchange, target: Target, call: Call): Promise<Answer> {
  assertMethod(exchange, 'POST');
  await evictPod(deps.registry, target, await readBody(exchange.request), call);
  return { status: 201, body: success() };
}

async function handleUnpause(deps: HandlerDeps, exchange: Exchange, target: Target, call: Call): Promise<Answer> {
  assertMethod(exchange, 'PUT');
  assertAcceptsAnything(exchange.request);
  await unpauseInstance(deps.registry, target, call);
  return { status: 202, body: success() };
}

async function handleMigrate(deps: HandlerDeps, exchange: Exchange, target: Target, call: Call): Promise<Answer> {
  assertMethod(exchange, 'PUT');
  assertAcceptsAnything(exchange.request);
  await migrateMachine(deps.registry, target, call);
  return { status: 202, body: success() };
}

function assertMethod({ request }: Exchange, method: string): void {
  if (request.method !== method) throw methodNotAllowed();
}

async function handleObject(
  deps: HandlerDeps,
  exchange: Exchange,
  target: Target,
  call: Call,
): Promise<Answer | undefined> {
  const { request, route } = exchange;
  const { registry } = deps;
  const { type, subresource } = route;
  const handler = subresource === '' ? undefined : SUBRESOURCE_HANDLERS.get(`${type.kind}/${subresource}`);
  if (handler) return handler(deps, exchange, { ...target, subresource: '' }, call);
  if (subresource !== '' && !(subresource === 'status' && type.hasStatus)) throw noSuchPath();
  switch (request.method) {
    case 'GET':
      return { status: 200, body: registry.get(target) };
    case 'PUT':
      return { status: 200, body: await registry.update(target, await readBody(request), call) };
    case 'PATCH': {
      const patch = await readBody(request);
      return { status: 200, body: await registry.patch(target, contentType(request), patch, call) };
    }
    case 'DELETE':
      if (subresource !== '') throw methodNotAllowed();
      return handleDelete(deps, exchange, target, call);
    default:
      throw methodNotAllowed();
  }
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

/** At once; the real server takes some time. */
function emptyNamespace(store: Store, namespace: string): void {
  for (const { collection, key, object } of [...store.all()]) {
    if (object.metadata.namespace === namespace) store.remove(collection, key);
  }
}
