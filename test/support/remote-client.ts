import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { formatTime } from '../../model/lease/timing.ts';
import type { Logger } from '../../runtime/log.ts';
import { apiVersionOf, collectionOf, PODS, type ResourceType } from '../../sandbox/api-server/built-in-types.ts';
import { ApiError } from '../../sandbox/api-server/errors.ts';
import type { LocalClient } from '../../sandbox/clients/local-client.ts';
import { recordEvent } from '../../sandbox/clients/local-client.ts';
import { type KubeObject, sameJson } from '../../sandbox/objects.ts';
import { createMirror, type Mirror } from './mirror.ts';

/**
 * A LocalClient for any API server, so that the sandbox's kubelets and KubeVirt controller work with a real one. It
 * reads from watched copies, which include its own writes at once.
 *
 * Like a real component it treats an unavailable API server as temporary: it retries reads and writes of named objects
 * until `close`. It does not retry the creation of an object with a generated name, because it cannot tell whether the
 * first attempt succeeded.
 */
export interface RemoteClient extends LocalClient {
  /** Resolves when every copy is complete. */
  start(): Promise<void>;
  close(): void;
}

export interface RemoteClientOptions {
  readonly client: KubeClient;
  readonly types: readonly ResourceType[];
  readonly log: Logger;
}

/** Statuses, or 0 for no response, that say nothing about the request itself. */
const PASSING = new Set([0, 429, 500, 502, 503, 504]);
const RETRY_MILLISECONDS = 250;

export function createRemoteClient({ client, types, log }: RemoteClientOptions): RemoteClient {
  const ended = new AbortController();
  // Every call that waits for a retry listens to it.
  setMaxListeners(0, ended.signal);
  const mirrors = new Map(types.map((type) => [collectionOf(type), createMirror(client, type, log)]));
  const mirrorOf = (type: ResourceType): Mirror => {
    const mirror = mirrors.get(collectionOf(type));
    if (!mirror) throw new RangeError(`${type.plural} are not watched`);
    return mirror;
  };
  // The only place that casts JSON to a typed view.
  const viewed = <T extends KubeObject>(object: KubeObject | undefined) => object as T;
  const taken = <T extends KubeObject>(type: ResourceType<T>, answer: unknown): T => {
    const object = viewed<T>(answer as KubeObject);
    mirrors.get(collectionOf(type))?.accept(object);
    return object;
  };
  const once = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof KubeError)) throw error;
      throw new ApiError(error.status, error.reason, error.message, undefined, { cause: error });
    }
  };
  const persist = async <T>(call: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await once(call);
      } catch (error) {
        if (!(error instanceof ApiError && PASSING.has(error.http)) || ended.signal.aborted) throw error;
        await sleep(RETRY_MILLISECONDS, undefined, { signal: ended.signal }).catch(() => undefined);
      }
    }
  };
  const read = <T extends KubeObject>(type: ResourceType<T>, { metadata }: KubeObject) =>
    persist(() => client.get(pathOf(type, metadata.namespace, metadata.name))).then((found) => taken(type, found));

  const remote: RemoteClient = {
    async start() {
      for (const mirror of mirrors.values()) void mirror.run(ended.signal);
      await Promise.all([...mirrors.values()].map((mirror) => mirror.whenSynced));
    },
    close: () => ended.abort(),
    get: (type, namespace, name) => viewed(mirrorOf(type).get(namespace, name)),
    list: (type) => mirrorOf(type).list().map(viewed) as never[],
    async create(type, object) {
      const { namespace, name } = object.metadata;
      const send = () => client.create(pathOf(type, namespace), object);
      if (name === '') return taken(type, await once(send));
      let tries = 0;
      try {
        return taken(
          type,
          await persist(() => {
            tries++;
            return send();
          }),
        );
      } catch (error) {
        // The response to an earlier attempt was lost.
        if (tries > 1 && error instanceof ApiError && error.code === 'AlreadyExists') return read(type, object);
        throw error;
      }
    },
    async edit(type, object, change, subresource) {
      const { namespace, name } = object.metadata;
      let current = viewed<typeof object>(mirrorOf(type).get(namespace, name)) ?? (await read(type, object));
      for (;;) {
        const draft = viewed<never>(structuredClone(current));
        change(draft);
        if (sameJson(draft, current)) return draft;
        try {
          const path = pathOf(type, namespace, name, subresource);
          return taken(type, await persist(() => client.replace(path, draft)));
        } catch (error) {
          if (!(error instanceof ApiError && error.http === 409)) throw error;
          // From the watch, not by a GET: a component that may only watch, such as virt-handler, has no permission for
          // GET.
          const newer = await mirrorOf(type).newerThan(current, ended.signal);
          if (newer === undefined) throw new ApiError(404, 'NotFound', `${type.plural} "${name}" not found`);
          current = viewed<typeof object>(newer);
        }
      }
    },
    async delete(type, { metadata: { namespace, name } }, options = {}) {
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
      try {
        await persist(() => client.delete(pathOf(type, namespace, name), { body }));
      } catch (error) {
        if (!(error instanceof ApiError && error.http === 404)) throw error;
      }
    },
    async bind({ metadata: { namespace, name, uid } }, node) {
      const target = { apiVersion: 'v1', kind: 'Node', name: node };
      const metadata = { name, ...(uid !== undefined && { uid }) };
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata, target };
      await once(() => client.create(pathOf(PODS, namespace, name, 'binding'), binding));
    },
    async record(component, involved, occurrence) {
      try {
        await recordEvent(remote, component, involved, occurrence, formatTime(Date.now()));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
      }
    },
    follow: (type, listener) => mirrorOf(type).follow((change) => listener(change as never)),
  };
  return remote;
}

function pathOf(type: ResourceType, namespace: string | undefined, ...rest: readonly (string | undefined)[]): string {
  const root = type.group === '' ? `/api/${apiVersionOf(type)}` : `/apis/${apiVersionOf(type)}`;
  const scope = type.namespaced ? `/namespaces/${namespace ?? 'default'}` : '';
  return [`${root}${scope}/${type.plural}`, ...rest.filter((part) => part !== undefined)].join('/');
}
