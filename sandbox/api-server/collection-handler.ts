import type { KubeObject } from '../objects.ts';
import type { Call } from './calls.ts';
import { methodNotAllowed } from './errors.ts';
import { readBody, sendJson } from './http.ts';
import { listPage } from './list.ts';
import { type Answer, success } from './object-handler.ts';
import { type Exchange, type HandlerDeps, includeOf, readDeleteOptions, readSelectors } from './request-options.ts';
import { apiVersionOf } from './resource-types.ts';
import type { Predicate } from './selectors.ts';
import { tableOf, wantsTable } from './table.ts';
import { streamWatch } from './watch-stream.ts';

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
