import type { JsonRecord, JsonValue, KubeObject, KubePod } from '../objects.ts';
import { apiVersionOf, NAMESPACES } from './built-in-types.ts';
import type { Call, Target } from './call.ts';
import { methodNotAllowed, noSuchPath } from './errors.ts';
import { pageOf, validateListOptions } from './list.ts';
import { streamLog } from './pod-log.ts';
import type { Registry } from './registry.ts';
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
import type { Store } from './store.ts';
import { assertAcceptsAnything, bindPod, evictPod, migrateMachine, unpauseInstance } from './subresources.ts';
import { tableOf, wantsTable } from './table.ts';
import { startWatch } from './watch.ts';

/** Undefined: the handler responds itself. */
type Answer = readonly [status: number, body: KubeObject | JsonRecord] | undefined;
type Handler = (deps: HandlerDeps, exchange: Exchange, target: Target, call: Call) => Promise<Answer>;

export async function handleResource(deps: HandlerDeps, exchange: Exchange): Promise<void> {
  const { request, response, route, user, query } = exchange;
  const { type, name } = route;
  const warnings: string[] = [];
  const call: Call = {
    user,
    fieldManager: query.get('fieldManager') || undefined,
    fieldValidation: readFieldValidation(query),
    dryRun: readDryRun(query),
    warn: (text) => void warnings.push(text),
  };
  let answer: Answer;
  try {
    if (name === undefined) answer = await handleCollection(deps, exchange, call);
    else answer = await handleObject(deps, exchange, { ...route, name }, call);
  } finally {
    if (warnings.length > 0 && !response.headersSent) response.setHeader('warning', warnings.map(warningHeader));
    // An unread body would precede the next request on this connection.
    request.resume();
  }
  if (answer === undefined) return;
  const [status, body] = answer;
  if (body.kind !== type.kind || !wantsTable(request.headers.accept)) return sendJson(response, status, body);
  const object = body as KubeObject;
  const metadata = { resourceVersion: object.metadata.resourceVersion ?? '' };
  sendJson(response, status, tableOf(type, [object], metadata, query));
}

const success = (details?: JsonRecord): JsonRecord => {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', ...(details && { details }), code: 200 };
};

async function handleCollection(deps: HandlerDeps, exchange: Exchange, call: Call): Promise<Answer> {
  const { request, query, route } = exchange;
  const { type, namespace } = route;
  switch (request.method) {
    case 'GET': {
      const matches = readSelectors(exchange);
      const isWatch = query.get('watch') === 'true' || query.get('watch') === '1';
      validateListOptions(query, isWatch);
      if (isWatch) {
        startWatch(deps, exchange, matches);
        return undefined;
      }
      const { items, metadata } = pageOf(deps.store, exchange, matches);
      if (wantsTable(request.headers.accept)) return [200, tableOf(type, items, metadata, query)];
      return [200, { kind: `${type.kind}List`, apiVersion: apiVersionOf(type), metadata, items }];
    }
    case 'POST':
      if (type.namespaced && namespace === undefined) throw methodNotAllowed();
      return [201, await deps.registry.create(type, namespace, await readBody(request), call)];
    default:
      throw methodNotAllowed();
  }
}

const withBody =
  (write: (registry: Registry, target: Target, body: JsonValue, call: Call) => Promise<void>): Handler =>
  async ({ registry }, { request }, target, call) => {
    await write(registry, target, await readBody(request), call);
    return [201, success()];
  };

const ofKubeVirt =
  (write: (registry: Registry, target: Target, call: Call) => Promise<void>): Handler =>
  async ({ registry }, { request }, target, call) => {
    assertAcceptsAnything(request);
    await write(registry, target, call);
    return [202, success()];
  };

/** By kind and name; each gets the target of its object. */
const SUBRESOURCES = new Map<string, { readonly method: string; readonly handle: Handler }>([
  ['Pod/log', { method: 'GET', handle: handleLog }],
  ['Pod/binding', { method: 'POST', handle: withBody(bindPod) }],
  ['Pod/eviction', { method: 'POST', handle: withBody(evictPod) }],
  ['VirtualMachineInstance/unpause', { method: 'PUT', handle: ofKubeVirt(unpauseInstance) }],
  ['VirtualMachine/migrate', { method: 'PUT', handle: ofKubeVirt(migrateMachine) }],
]);

async function handleLog(deps: HandlerDeps, exchange: Exchange, target: Target): Promise<undefined> {
  await streamLog(deps, exchange, deps.registry.get(target) as KubePod);
}

async function handleObject(deps: HandlerDeps, exchange: Exchange, target: Target, call: Call): Promise<Answer> {
  const { request, route } = exchange;
  const { registry } = deps;
  const { type, subresource } = route;
  const special = SUBRESOURCES.get(`${type.kind}/${subresource}`);
  if (special) {
    if (request.method !== special.method) throw methodNotAllowed();
    return special.handle(deps, exchange, { ...target, subresource: '' }, call);
  }
  if (subresource !== '' && !(subresource === 'status' && type.hasStatus)) throw noSuchPath();
  switch (request.method) {
    case 'GET':
      return [200, registry.get(target)];
    case 'PUT':
      return [200, await registry.update(target, await readBody(request), call)];
    case 'PATCH':
      return [200, await registry.patch(target, contentType(request), await readBody(request), call)];
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
  if (type === NAMESPACES && gone && !call.dryRun) emptyNamespace(deps.store, name);
  // The response contains the object if it is a pod or only marked for deletion.
  if (!gone || type.kind === 'Pod') return [200, object];
  const { uid = '' } = object.metadata;
  const details = { name, kind: type.plural, uid, ...(type.group !== '' && { group: type.group }) };
  return [200, success(details)];
}

/** At once; the real server takes some time. */
function emptyNamespace(store: Store, namespace: string): void {
  for (const { collection, key, object } of [...store.all()]) {
    if (object.metadata.namespace === namespace) store.remove(collection, key);
  }
}
