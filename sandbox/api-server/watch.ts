import type { JsonRecord, KubeObject } from '../objects.ts';
import { apiVersionOf, collectionOf } from './built-in-types.ts';
import { endsType } from './definitions.ts';
import { type ApiError, expired, tooNew } from './errors.ts';
import { readVersion, selectedBy } from './list.ts';
import type { Exchange, HandlerDeps } from './requests.ts';
import type { Predicate } from './selectors.ts';
import type { StoreChange } from './store.ts';
import { tableOf, wantsTable } from './table.ts';

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: KubeObject;
}

/** Seconds from the last bookmark to the end of a watch, as in the API server. */
const BEFORE_END_SECONDS = 2;
const DEFAULT_SECONDS = 1_800;

/** On the bookmark that ends the initial events. Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go */
const INITIAL_EVENTS_END = { 'k8s.io/initial-events-end': 'true' };

/**
 * One watch: one JSON document per line. An object that starts to match is ADDED, one that no longer matches DELETED. An
 * unusable version causes one ERROR event. With sendInitialEvents, the objects that exist come first, and a bookmark
 * ends them (a watch list); there is no other bookmark before a change. It ends with its time, its client, the server or
 * the definition of its type, and remembers the version of the last change of its collection.
 */
export function startWatch(deps: HandlerDeps, exchange: Exchange, matches: Predicate): void {
  const { store, stopping, bookmarkSeconds } = deps;
  const { request, response, query, route } = exchange;
  const { type } = route;
  const collection = collectionOf(type);
  const asTable = wantsTable(request.headers.accept);
  const isBookmarked = query.get('allowWatchBookmarks') === 'true' && !asTable;
  const isVisible = selectedBy(exchange, matches);
  const from = readVersion(query);
  let latest = from || store.version;

  const write = (event: { readonly type: string; readonly object: JsonRecord }) => {
    // Changes can still arrive between the end of the watch and the close of its connection.
    if (!response.writableEnded && !response.destroyed) response.write(`${JSON.stringify(event)}\n`);
  };
  const send = ({ type: change, object }: WatchEvent) => {
    const metadata = { resourceVersion: object.metadata.resourceVersion ?? '' };
    write({ type: change, object: asTable ? tableOf(type, [object], metadata, query) : object });
  };
  const bookmark = (annotations?: JsonRecord) => {
    const resourceVersion = String(latest);
    const metadata = { resourceVersion, creationTimestamp: null, ...(annotations && { annotations }) };
    write({ type: 'BOOKMARK', object: { kind: type.kind, apiVersion: apiVersionOf(type), metadata } });
  };
  const forward = (change: StoreChange) => {
    // After the deletions of the type's objects, which follow.
    if (endsType(change, type)) queueMicrotask(() => response.end());
    if (change.collection !== collection) return;
    latest = change.version;
    const event = visibleEvent(change, isVisible);
    if (event) send(event);
  };

  /** Sends the existing objects, or the changes since a version. */
  const sendEarlier = (): ApiError | undefined => {
    if (from > store.version) return tooNew(from, store.version);
    const sendInitialEvents = query.get('sendInitialEvents');
    if (sendInitialEvents === 'true' || (sendInitialEvents === null && from === 0)) {
      latest = store.version;
      for (const object of store.list(collection).filter(isVisible)) send({ type: 'ADDED', object });
      if (sendInitialEvents === 'true' && isBookmarked) bookmark(INITIAL_EVENTS_END);
      return undefined;
    }
    const missed = from === 0 ? [] : store.since(collection, from);
    if (!missed) return expired(`too old resource version: ${from} (${store.compacted})`);
    for (const change of missed) forward(change);
    return undefined;
  };

  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  const error = sendEarlier();
  if (error !== undefined) {
    write({ type: 'ERROR', object: error.toStatus() });
    response.end();
    return;
  }
  const unsubscribe = store.subscribe(forward);
  const milliseconds = Number(query.get('timeoutSeconds') || DEFAULT_SECONDS) * 1000;
  const end = () => response.end();
  const timers = [setTimeout(end, milliseconds)];
  if (isBookmarked) {
    const start = latest;
    const bookmarkIfNewer = () => latest > start && bookmark();
    timers.push(setInterval(bookmarkIfNewer, bookmarkSeconds * 1000));
    timers.push(setTimeout(bookmarkIfNewer, Math.max(0, milliseconds - BEFORE_END_SECONDS * 1000)));
  }
  stopping.addEventListener('abort', end);
  response.once('close', () => {
    for (const timer of timers) clearTimeout(timer);
    stopping.removeEventListener('abort', end);
    unsubscribe();
  });
}

function visibleEvent(change: StoreChange, isVisible: Predicate): WatchEvent | undefined {
  const { type, object, previous } = change;
  const before = previous !== undefined && isVisible(previous) ? previous : undefined;
  if (type !== 'DELETED' && isVisible(object)) return { type: before ? 'MODIFIED' : 'ADDED', object };
  if (!before) return undefined;
  // The last state that matched, with the version of the change that ended the match.
  const { resourceVersion } = object.metadata;
  const metadata = { ...before.metadata, ...(resourceVersion !== undefined && { resourceVersion }) };
  return { type: 'DELETED', object: { ...before, metadata } };
}
