import type { JsonRecord, KubeObject } from '../objects.ts';
import { apiVersionOf, collectionOf, type ResourceType } from './built-in-types.ts';
import { endsType } from './definitions.ts';
import { type ApiError, badRequest, expired, tooNew } from './errors.ts';
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

/** On the bookmark that ends the initial events. Source: k8s.io/apimachinery/pkg/apis/meta/v1/types.go */
const INITIAL_EVENTS_END = { 'k8s.io/initial-events-end': 'true' };

/**
 * One watch: one JSON document per line. An object that starts to match is ADDED, one that no longer matches DELETED. An
 * unusable version causes one ERROR event. With sendInitialEvents, the objects that exist come first, and a bookmark
 * ends them (a watch list); there is no other bookmark before a change. It ends with its time, its client, the server or
 * the definition of its type, and remembers the version of the last change of its collection.
 */
export class WatchStream {
  readonly #deps: HandlerDeps;
  readonly #exchange: Exchange;
  readonly #matches: Predicate;
  readonly #asTable: boolean;
  readonly #isBookmarked: boolean;
  #latest: number;

  constructor(deps: HandlerDeps, exchange: Exchange, matches: Predicate) {
    this.#deps = deps;
    this.#exchange = exchange;
    this.#matches = matches;
    this.#asTable = wantsTable(exchange.request.headers.accept);
    this.#isBookmarked = exchange.query.get('allowWatchBookmarks') === 'true' && !this.#asTable;
    const version = readVersion(exchange.query);
    this.#latest = version || deps.store.version;
    exchange.response.writeHead(200, { 'content-type': 'application/json' });
    exchange.response.flushHeaders();
    const error = this.#sendEarlier(version);
    if (error === undefined) {
      this.#follow();
      return;
    }
    this.#send({ type: 'ERROR', object: error.toStatus() });
    exchange.response.end();
  }

  /** Sends the existing objects, or the changes since a version. */
  #sendEarlier(version: number): ApiError | undefined {
    const { store } = this.#deps;
    const { query, route } = this.#exchange;
    const collection = collectionOf(route.type);
    if (version > store.version) return tooNew(version, store.version);
    const sendInitialEvents = query.get('sendInitialEvents');
    if (sendInitialEvents === 'true' || (sendInitialEvents === null && version === 0)) {
      this.#latest = store.version;
      for (const object of store.list(collection)) {
        if (this.#isVisible(object)) this.#send({ type: 'ADDED', object });
      }
      if (sendInitialEvents === 'true' && this.#isBookmarked) this.#bookmark(INITIAL_EVENTS_END);
      return undefined;
    }
    const missed = version === 0 ? [] : store.since(collection, version);
    if (!missed) return expired(`too old resource version: ${version} (${store.compacted})`);
    for (const change of missed) this.#forward(change);
    return undefined;
  }

  #follow(): void {
    const { store, stopping, bookmarkSeconds } = this.#deps;
    const { query, response } = this.#exchange;
    const unsubscribe = store.subscribe((change) => this.#forward(change));
    const milliseconds = Number(query.get('timeoutSeconds') || DEFAULT_SECONDS) * 1000;
    const end = () => response.end();
    const timers = [setTimeout(end, milliseconds)];
    if (this.#isBookmarked) {
      const start = this.#latest;
      const bookmarkIfNewer = () => this.#latest > start && this.#bookmark();
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

  #forward(change: StoreChange): void {
    const { route, response } = this.#exchange;
    // After the deletions of the type's objects, which follow.
    if (endsType(change, route.type)) queueMicrotask(() => response.end());
    if (change.collection !== collectionOf(route.type)) return;
    this.#latest = change.version;
    const event = visibleEvent(change, (object) => this.#isVisible(object));
    if (event) this.#send(event);
  }

  #isVisible(object: KubeObject | undefined): boolean {
    const { namespace } = this.#exchange.route;
    if (object === undefined || (namespace !== undefined && object.metadata.namespace !== namespace)) return false;
    return this.#matches(object);
  }

  #bookmark(annotations?: JsonRecord): void {
    const { type } = this.#exchange.route;
    const resourceVersion = String(this.#latest);
    const metadata = { resourceVersion, creationTimestamp: null, ...(annotations && { annotations }) };
    this.#send({ type: 'BOOKMARK', object: { kind: type.kind, apiVersion: apiVersionOf(type), metadata } });
  }

  #send(event: WatchEvent): void {
    const { response, query, route } = this.#exchange;
    const eventOrRow = this.#asTable ? asTableEvent(event, route.type, includeOf(query)) : event;
    // Changes can still arrive between the end of the watch and the close of its connection.
    if (!response.writableEnded && !response.destroyed) response.write(`${JSON.stringify(eventOrRow)}\n`);
  }
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

function visibleEvent(
  change: StoreChange,
  isVisible: (object: KubeObject | undefined) => boolean,
): WatchEvent | undefined {
  const now = change.type !== 'DELETED' && isVisible(change.object);
  const before = isVisible(change.previous);
  if (now) return { type: before ? 'MODIFIED' : 'ADDED', object: change.object };
  if (!before || !change.previous) return undefined;
  // The last state that matched, with the version of the change that ended the match.
  const { resourceVersion } = change.object.metadata;
  const metadata = { ...change.previous.metadata, ...(resourceVersion !== undefined && { resourceVersion }) };
  return { type: 'DELETED', object: { ...change.previous, metadata } };
}
