import type { KubeObject } from '../objects.ts';
import { boundedWarnings } from './admission-review.ts';
import type { Call } from './calls.ts';
import { handleCollection } from './collection-handler.ts';
import { sendJson, warningHeader } from './http.ts';
import { type Answer, handleObject } from './object-handler.ts';
import { type Exchange, type HandlerDeps, includeOf, readDryRun, readFieldValidation } from './request-options.ts';
import { tableOf, wantsTable } from './table.ts';

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
