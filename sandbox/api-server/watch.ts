import type { JsonObject, KubeObject } from '../objects.ts';
import { apiVersionOf, collectionOf } from './built-in-types.ts';
import { ApiError, badRequest, expired } from './errors.ts';
import { includeOf, tableOf, wantsTable } from './list.ts';
import type { Exchange, HandlerDeps } from './requests.ts';
import type { Predicate } from './selectors.ts';
import type { Change } from './store.ts';

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: JsonObject;
}

/** Seconds from the last bookmark to the end of a watch, as in the API server. */
const BEFORE_END_SECONDS = 2;
/** Seconds of a watch without a timeout of the client. */
const DEFAULT_SECONDS = 1_800;

/**
 * Serves a watch: one JSON document per line, until the client, its timeout or the server ends it. It sends every change
 * of a collection as the selectors see it: an object that starts to match is ADDED, one that no longer matches is
 * DELETED. A version that is too old or too new causes one ERROR event, and nothing follows. As in the API server, there
 * is no bookmark before a change of the collection. A watch that reaches its timeout ends cleanly.
 */
export function streamWatch(deps: HandlerDeps, exchange: Exchange, matches: Predicate): void {
  const { store } = deps;
  const { request, response, query, route } = exchange;
  const { type, namespace } = route;
  const collection = collectionOf(type);
  const asTable = wantsTable(request.headers.accept);
  const text = query.get('resourceVersion') || undefined;
  if (text !== undefined && !/^\d+$/.test(text)) throw badRequest(`invalid resource version: ${text}`);
  // Undefined or 0 starts with the existing objects.
  const version = Number(text ?? 0);
  const bookmarks = query.get('allowWatchBookmarks') === 'true';
  // WatchList: start with the existing objects and mark their end with a bookmark.
  const sendInitialEvents = query.get('sendInitialEvents') === 'true';
  if (sendInitialEvents && query.get('resourceVersionMatch') !== 'NotOlderThan') {
    throw badRequest('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
  }

  const encode = ({ type: what, object }: WatchEvent) => {
    if (!asTable || what === 'ERROR' || what === 'BOOKMARK') return { type: what, object };
    const row = object as KubeObject;
    const metadata = { resourceVersion: row.metadata.resourceVersion ?? '' };
    return { type: what, object: tableOf(type, [row], metadata, includeOf(query), deps.now()) };
  };
  const send = (event: WatchEvent) => {
    // Changes can still arrive between the end of the watch and the close of its connection.
    if (!response.writableEnded && !response.destroyed) response.write(`${JSON.stringify(encode(event))}\n`);
  };
  const fail = (error: ApiError) => {
    send({ type: 'ERROR', object: error.toStatus() });
    response.end();
  };
  const isVisible = (object: KubeObject | undefined) =>
    object !== undefined && (namespace === undefined || object.metadata.namespace === namespace) && matches(object);
  const start = version || store.version;
  let latest = start;
  const forward = (change: Change) => {
    if (change.collection !== collection) return;
    latest = change.version;
    const event = asSeen(change, isVisible);
    if (event) send(event);
  };
  const bookmark = (annotations?: JsonObject) => {
    const metadata = { resourceVersion: String(latest), creationTimestamp: null, ...(annotations && { annotations }) };
    send({ type: 'BOOKMARK', object: { kind: type.kind, apiVersion: apiVersionOf(type), metadata } });
  };

  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  if (version > store.version) return fail(tooNew(version, store.version));
  if (version === 0 || (sendInitialEvents && bookmarks)) {
    for (const [, object] of store.list(collection) ?? []) if (isVisible(object)) send({ type: 'ADDED', object });
    if (sendInitialEvents && bookmarks) bookmark({ 'k8s.io/initial-events-end': 'true' });
  } else {
    const missed = store.since(collection, version);
    if (!missed) return fail(expired(`too old resource version: ${version} (${store.compacted})`));
    for (const change of missed) forward(change);
  }
  const unsubscribe = store.subscribe(forward);
  const milliseconds = Number(query.get('timeoutSeconds') || DEFAULT_SECONDS) * 1000;
  const end = () => response.end();
  const timers = [setTimeout(end, milliseconds)];
  if (bookmarks && !asTable) {
    const bookmarkIfNewer = () => latest > start && bookmark();
    timers.push(setInterval(bookmarkIfNewer, deps.bookmarkSeconds * 1000));
    timers.push(setTimeout(bookmarkIfNewer, Math.max(0, milliseconds - BEFORE_END_SECONDS * 1000)));
  }
  deps.stopping.addEventListener('abort', end);
  response.once('close', () => {
    for (const timer of timers) clearTimeout(timer);
    deps.stopping.removeEventListener('abort', end);
    unsubscribe();
  });
}

function tooNew(version: number, current: number): ApiError {
  const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
  const message = `Timeout: Too large resource version: ${version}, current: ${current}`;
  return new ApiError(504, 'Timeout', message, { retryAfterSeconds: 1, causes });
}

function asSeen(change: Change, isVisible: (object: KubeObject | undefined) => boolean): WatchEvent | undefined {
  const now = change.type !== 'DELETED' && isVisible(change.object);
  const before = isVisible(change.previous);
  if (now) return { type: before ? 'MODIFIED' : 'ADDED', object: change.object };
  if (!before || !change.previous) return undefined;
  // The last state that matched, with the version of the change that ended the match.
  const { resourceVersion } = change.object.metadata;
  const metadata = { ...change.previous.metadata, ...(resourceVersion !== undefined && { resourceVersion }) };
  return { type: 'DELETED', object: { ...change.previous, metadata } };
}
