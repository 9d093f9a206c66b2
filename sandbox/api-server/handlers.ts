import type { KubeObject } from '../objects.ts';
import { boundedWarnings } from './admission-review.ts';
import type { Call } from './calls.ts';
import { tableOf, wantsTable } from './columns.ts';
import { methodNotAllowed } from './errors.ts';
import { readBody, sendJson, warningHeader } from './http.ts';
import { listPage } from './list.ts';
import { type Answer, handleObject, success } from './object-handler.ts';
import {
  type Exchange,
  type HandlerDeps,
  includeOf,
  readDeleteOptions,
  readDryRun,
  readFieldValidation,
  readSelectors,
} from './request-options.ts';
import { apiVersionOf } from './resource-types.ts';
import type { Predicate } from './selectors.ts';
import { streamWatch } from './watch-stream.ts';

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
export async function handleCollection(deps: HandlerDeps, exchange: Exchange, call: Call): Promise<Answer | undefined> {
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
