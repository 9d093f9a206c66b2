import type { JsonRecord, KubeObject } from '../objects.ts';
import { apiVersionOf, collectionOf, type ResourceType } from './built-in-types.ts';
import { ApiError, badRequest, expired } from './errors.ts';
import { type IncludeObject, includeOf, tableOf, wantsTable } from './list.ts';
import type { Exchange, HandlerDeps } from './requests.ts';
import type { Predicate } from './selectors.ts';
import type { StoreChange } from './store.ts';

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: JsonRecord;
}

/** Seconds from the last bookmark to the end of a watch, as in the API server. */
const BEFORE_END_SECONDS = 2;
const DEFAULT_SECONDS = 1_800;

/**
 * Serves a watch: one JSON document per line. An object that starts to match is ADDED, one that no longer matches
 * DELETED. An unusable version causes one ERROR event. There is no bookmark before a change.
 */
export function streamWatch(deps: HandlerDeps, exchange: Exchange, matches: Predicate): void {
  const { store } = deps;
  const { request, response, query, route } = exchange;
  const { type, namespace } = route;
  const collection = collectionOf(type);
  const asTable = wantsTable(request.headers.accept);
  const version = readVersion(query);
  const send = (event: WatchEvent) => {
    const eventOrRow = asTable ? asTableEvent(event, type, includeOf(query)) : event;
    // Changes can still arrive between the end of the watch and the close of its connection.
    if (!response.writableEnded && !response.destroyed) response.write(`${JSON.stringify(eventOrRow)}\n`);
  };
  const fail = (error: ApiError) => {
    send({ type: 'ERROR', object: error.toStatus() });
    response.end();
  };
  const isVisible = (object: KubeObject | undefined) =>
    object !== undefined && (namespace === undefined || object.metadata.namespace === namespace) && matches(object);
  const start = version || store.version;
  let latest = start;
  const forward = (change: StoreChange) => {
    if (change.collection !== collection) return;
    latest = change.version;
    const event = asSeen(change, isVisible);
    if (event) send(event);
  };
  const bookmark = () => {
    const metadata = { resourceVersion: String(latest), creationTimestamp: null };
    send({ type: 'BOOKMARK', object: { kind: type.kind, apiVersion: apiVersionOf(type), metadata } });
  };

  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  if (version > store.version) {
    fail(tooNew(version, store.version));
    return;
  }
  if (version === 0) {
    for (const object of store.list(collection)) if (isVisible(object)) send({ type: 'ADDED', object });
  } else {
    const missed = store.since(collection, version);
    if (!missed) {
      fail(expired(`too old resource version: ${version} (${store.compacted})`));
      return;
    }
    for (const change of missed) forward(change);
  }
  const unsubscribe = store.subscribe(forward);
  const milliseconds = Number(query.get('timeoutSeconds') || DEFAULT_SECONDS) * 1000;
  const end = () => response.end();
  const timers = [setTimeout(end, milliseconds)];
  if (query.get('allowWatchBookmarks') === 'true' && !asTable) {
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

function readVersion(query: URLSearchParams): number {
  const version = query.get('resourceVersion') || '0';
  if (!/^\d+$/.test(version)) throw badRequest(`invalid resource version: ${version}`);
  return Number(version);
}

function asTableEvent(event: WatchEvent, type: ResourceType, include: IncludeObject): WatchEvent {
  if (event.type === 'ERROR' || event.type === 'BOOKMARK') return event;
  const row = event.object as KubeObject;
  const metadata = { resourceVersion: row.metadata.resourceVersion ?? '' };
  return { type: event.type, object: tableOf(type, [row], metadata, include) };
}

function tooNew(version: number, current: number): ApiError {
  const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }];
  const message = `Timeout: Too large resource version: ${version}, current: ${current}`;
  return new ApiError(504, 'Timeout', message, { retryAfterSeconds: 1, causes });
}

function asSeen(change: StoreChange, isVisible: (object: KubeObject | undefined) => boolean): WatchEvent | undefined {
  const now = change.type !== 'DELETED' && isVisible(change.object);
  const before = isVisible(change.previous);
  if (now) return { type: before ? 'MODIFIED' : 'ADDED', object: change.object };
  if (!before || !change.previous) return undefined;
  // The last state that matched, with the version of the change that ended the match.
  const { resourceVersion } = change.object.metadata;
  const metadata = { ...change.previous.metadata, ...(resourceVersion !== undefined && { resourceVersion }) };
  return { type: 'DELETED', object: { ...change.previous, metadata } };
}
