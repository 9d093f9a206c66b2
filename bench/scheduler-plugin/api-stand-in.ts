import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An API server of fixed lists, whose watches send what a benchmark pushes: it costs less than the measured daemon. */
export interface ApiStandIn {
  readonly url: string;
  /** Sends an event to the watches of a collection. */
  push(
    path: string,
    type: 'ADDED' | 'MODIFIED' | 'DELETED',
    object: { readonly metadata: object; readonly [field: string]: unknown },
  ): void;
  stop(): Promise<void>;
}

/** @param lists the objects of each collection, by its path; all others are empty */
export async function startApiStandIn(lists: ReadonlyMap<string, readonly object[]>): Promise<ApiStandIn> {
  const watches = new Map<string, Set<ServerResponse>>();
  let version = 1;
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://api');
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' });
    if (request.method !== 'GET') {
      response.end('{}');
    } else if (searchParams.get('watch') === 'true') {
      const open = watches.get(pathname) ?? new Set();
      watches.set(pathname, open.add(response));
      response.on('close', () => open.delete(response));
      response.flushHeaders();
    } else {
      const metadata = { resourceVersion: String(version) };
      response.end(JSON.stringify({ metadata, items: lists.get(pathname) ?? [] }));
    }
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    push(path, type, object) {
      const metadata = { ...object.metadata, resourceVersion: String(++version) };
      const line = `${JSON.stringify({ type, object: { ...object, metadata } })}\n`;
      for (const watch of watches.get(path) ?? []) watch.write(line);
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
