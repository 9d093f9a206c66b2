import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { applyMergePatch } from '../../model/json.ts';

type Value = unknown;
type Object_ = Record<string, Value>;

export type FakeApi = ReturnType<typeof createFakeApi>;

/**
 * The part of an API server that the agent uses, with the node's own objects: objects by path; reads, creations, applies
 * and merge patches.
 */
export function createFakeApi(nodeName: string, uid = 'node-uid-1') {
  let version = 0;
  let server: Server | undefined;
  const watches = new Set<ServerResponse>();
  const objects = new Map<string, Object_>();
  objects.set('/api/v1/pods', { metadata: {}, items: [] });
  objects.set(`/api/v1/nodes/${nodeName}`, {
    metadata: { name: nodeName, uid },
    status: { nodeInfo: { kubeletVersion: 'v1.36.0' } },
  });

  const find = (path: string): Object_ => {
    if (api.failing) throw new KubeError(503, 'ServiceUnavailable', `${path}: down for the test`);
    const object = objects.get(path);
    if (object === undefined) throw new KubeError(404, 'NotFound', `${path} not found`);
    return object;
  };
  const store = (path: string, object: Object_): Object_ => {
    const metadata = { ...(object.metadata as Object_), resourceVersion: String(++version) };
    const stored = { ...object, metadata };
    objects.set(path, stored);
    api.onWrite(path, stored);
    return structuredClone(stored);
  };
  const request = async (method: string, path: string, body?: Object_, type = ''): Promise<unknown> => {
    if (method === 'GET') {
      const object = structuredClone(find(path));
      return 'items' in object ? { ...object, metadata: { resourceVersion: String(version) } } : object;
    }
    api.writes.push(`${method} ${path}`);
    if (method === 'POST') {
      const full = `${path}/${nameOf(body)}`;
      if (api.failing) find(full);
      if (objects.has(full)) throw new KubeError(409, 'AlreadyExists', `${full} exists`);
      return store(full, body ?? {});
    }
    const target = path.replace(/\/status$/, '');
    // The agent is the only manager of what it applies, so fields that it leaves out are removed.
    if (type.startsWith('application/apply-patch')) return store(target, { ...find(target), status: body?.status });
    return store(target, applyMergePatch(find(target), body ?? {}) as Object_);
  };
  const unused = () => Promise.reject(new Error('the agent does not use this'));

  const client: KubeClient = {
    get: (path) => request('GET', path),
    create: (path, body) => request('POST', path, structuredClone({ ...body })),
    patch: (path, type, body) => request('PATCH', path, structuredClone({ ...body }), type),
    replace: unused,
    delete: unused,
    watch: unused,
    close: async () => {},
  };

  const api = {
    client,
    objects,
    /** `PATCH /path` for each request except reads. */
    writes: [] as string[],
    /** While set, every request fails. */
    failing: false,
    /** While set, requests over HTTP get no answer. */
    silent: false,
    /** Called with each object as it was stored. */
    onWrite: (_path: string, _object: Readonly<Record<string, unknown>>): void => {},
    /** Sends an event to every watch. */
    announce(type: 'ADDED' | 'DELETED', object: Object_): void {
      const metadata = { ...(object.metadata as Object_), resourceVersion: String(++version) };
      for (const watch of watches) watch.write(`${JSON.stringify({ type, object: { ...object, metadata } })}\n`);
    },
    /** Serves the same objects over HTTP. @returns the address */
    async listen(port = 0): Promise<string> {
      server = createServer(async (incoming, response) => {
        if (api.silent) return;
        if (/[?&]watch=/.test(incoming.url ?? '')) {
          watches.add(response);
          response.on('close', () => watches.delete(response));
          response.writeHead(200).flushHeaders();
          return;
        }
        const body = await text(incoming);
        const { status, answer } = await request(
          incoming.method ?? '',
          (incoming.url ?? '').split('?')[0] ?? '',
          body ? JSON.parse(body) : {},
          incoming.headers['content-type'],
        ).then(
          (value) => ({ status: 200, answer: value }),
          (error: KubeError) => ({ status: error.status, answer: { reason: error.reason, message: error.message } }),
        );
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
      });
      await new Promise<void>((resolve) => server?.listen(port, '127.0.0.1', resolve));
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    async close(): Promise<void> {
      server?.closeAllConnections();
      await new Promise((resolve) => (server ? server.close(resolve) : resolve(undefined)));
    },
  };
  return api;
}

const nameOf = (object: Object_ | undefined): Value => (object?.metadata as Object_ | undefined)?.name;
