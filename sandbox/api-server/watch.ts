import type { JsonObject, KubeObject } from '../objects.ts';
import { apiVersionOf, collectionOf, type ResourceType } from './built-in-types.ts';
import { ApiError, badRequest, expired } from './errors.ts';
import { includeOf, tableOf, wantsTable } from './list.ts';
import type { Exchange, HandlerDeps } from './requests.ts';
import type { Predicate } from './selectors.ts';
import type { Change, Store } from './store.ts';

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: JsonObject;
}

interface WatchOptions {
  readonly namespace?: string | undefined;
  readonly matches: Predicate;
  /** The version to continue from; undefined or 0 starts with the existing objects. */
  readonly version?: number | undefined;
  readonly allowBookmarks: boolean;
  /** Start with the existing objects and mark their end with a bookmark (WatchList). */
  readonly sendInitialEvents?: boolean;
  /** Seconds between bookmarks. */
  readonly bookmarkSeconds: number;
  /** Seconds after which the caller ends the watch. */
  readonly timeoutSeconds: number;
}

/** Seconds from the last bookmark to the end of a watch, as in the API server. */
const BEFORE_END_SECONDS = 2;

/**
 * Sends every change of a collection as the selectors see it: an object that starts to match is ADDED, one that no
 * longer matches is DELETED. A version that is too old or too new causes one ERROR event, and nothing follows. As in the
 * API server, there is no bookmark before a change of the collection. Returns a function that ends the watch.
 */
function startWatch(
  store: Store,
  type: ResourceType,
  options: WatchOptions,
  send: (event: WatchEvent) => void,
): () => void {
  const { namespace, version, sendInitialEvents = false } = options;
  const collection = collectionOf(type);
  const isVisible = (object: KubeObject | undefined) =>
    object !== undefined &&
    (namespace === undefined || object.metadata.namespace === namespace) &&
    options.matches(object);

  const start = version || store.version;
  let latest = start;
  const forward = (change: Change) => {
    if (change.collection !== collection) return;
    latest = change.version;
    const event = asSeen(change, isVisible);
    if (event) send(event);
  };
  const bookmark = (annotations?: JsonObject) =>
    send({
      type: 'BOOKMARK',
      object: {
        kind: type.kind,
        apiVersion: apiVersionOf(type),
        metadata: {
          resourceVersion: String(latest),
          creationTimestamp: null,
          ...(annotations && { annotations }),
        },
      },
    });

  if (version !== undefined && version > store.version) {
    const details = {
      retryAfterSeconds: 1,
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    };
    const message = `Timeout: Too large resource version: ${version}, current: ${store.version}`;
    send({ type: 'ERROR', object: new ApiError(504, 'Timeout', message, details).toStatus() });
    return () => {};
  }
  if (sendInitialEvents || version === undefined || version === 0) {
    for (const [, object] of store.list(collection) ?? []) if (isVisible(object)) send({ type: 'ADDED', object });
    if (sendInitialEvents) bookmark({ 'k8s.io/initial-events-end': 'true' });
  } else {
    const missed = store.since(collection, version);
    if (!missed) {
      const why = `too old resource version: ${version} (${store.compacted})`;
      send({ type: 'ERROR', object: expired(why).toStatus() });
      return () => {};
    }
    for (const change of missed) forward(change);
  }
  const unsubscribe = store.subscribe(forward);
  const bookmarkIfNewer = () => latest > start && bookmark();
  const { allowBookmarks, bookmarkSeconds } = options;
  const beforeEnd = Math.max(0, options.timeoutSeconds - BEFORE_END_SECONDS) * 1000;
  const timer = allowBookmarks ? setInterval(bookmarkIfNewer, bookmarkSeconds * 1000) : undefined;
  const last = allowBookmarks ? setTimeout(bookmarkIfNewer, beforeEnd) : undefined;
  return () => {
    unsubscribe();
    clearInterval(timer);
    clearTimeout(last);
  };
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

/** Seconds of a watch without a timeout of the client. */
const DEFAULT_SECONDS = 1_800;

/**
 * Serves a watch: one JSON document per line, until the client, its timeout or the server ends it. A watch that reaches
 * its timeout ends cleanly.
 * @throws ApiError 400 for a resourceVersion that is not a number
 */
export function streamWatch(deps: HandlerDeps, exchange: Exchange, matches: Predicate): void {
  const { request, response, query, route } = exchange;
  const { type, namespace } = route;
  const asTable = wantsTable(request.headers.accept);
  const version = query.get('resourceVersion') || undefined;
  if (version !== undefined && !/^\d+$/.test(version)) throw badRequest(`invalid resource version: ${version}`);
  const sendInitialEvents = query.get('sendInitialEvents') === 'true';
  const allowBookmarks = query.get('allowWatchBookmarks') === 'true';
  if (sendInitialEvents && query.get('resourceVersionMatch') !== 'NotOlderThan') {
    throw badRequest('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
  }

  const encode = ({ type: what, object }: WatchEvent) => {
    if (!asTable || what === 'ERROR' || what === 'BOOKMARK') return { type: what, object };
    const row = object as KubeObject;
    const metadata = { resourceVersion: row.metadata.resourceVersion ?? '' };
    return { type: what, object: tableOf(type, [row], metadata, includeOf(query), deps.now()) };
  };
  const seconds = Number(query.get('timeoutSeconds') || DEFAULT_SECONDS);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  let failed = false;
  const stop = startWatch(
    deps.store,
    type,
    {
      namespace,
      matches,
      version: version === undefined ? undefined : Number(version),
      allowBookmarks: allowBookmarks && !asTable,
      sendInitialEvents: sendInitialEvents && allowBookmarks,
      bookmarkSeconds: deps.bookmarkSeconds,
      timeoutSeconds: seconds,
    },
    (event) => {
      if (event.type === 'ERROR') failed = true;
      // Changes can still arrive between the end of the watch and the close of its connection.
      if (!response.writableEnded && !response.destroyed) response.write(`${JSON.stringify(encode(event))}\n`);
    },
  );
  const end = () => response.end();
  const timer = setTimeout(end, seconds * 1000);
  deps.stopping.addEventListener('abort', end);
  response.once('close', () => {
    clearTimeout(timer);
    deps.stopping.removeEventListener('abort', end);
    stop();
  });
  if (failed) end();
}
