import type { KubeObject } from '../objects.ts';
import { tableOf, wantsTable } from './columns.ts';
import { badRequest } from './errors.ts';
import { type Exchange, type HandlerDeps, includeOf } from './request-options.ts';
import type { Predicate } from './selectors.ts';
import { startWatch, type WatchEvent } from './watch.ts';

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
