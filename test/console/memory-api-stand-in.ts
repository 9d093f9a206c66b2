import { KINDS, type Kind } from '../../console/server/kinds.ts';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { EVENTS, NODES, VIRTUAL_MACHINE_INSTANCES } from '../../sandbox/api-server/built-in-types.ts';
import { fieldSelector } from '../../sandbox/api-server/selectors.ts';
import type { KubeObject } from '../../sandbox/objects.ts';
import { createApi, type ListCall } from '../kube/scripted-api-stand-in.ts';

interface ApiObject {
  readonly metadata: { readonly name?: string | undefined; readonly namespace?: string | undefined };
}

/** The collections that the console reads, in memory: lists, and watches that deliver changes. */
export interface MemoryApi {
  readonly client: KubeClient;
  put(kind: Kind, object: ApiObject): void;
  remove(kind: Kind, object: ApiObject): void;
  /** Events, which are listed but not watched. */
  event(event: object): void;
  /**
   * From now on, requests for this kind fail with the error, and open watches end; undefined: they are answered again.
   */
  fail(kind: Kind, error: KubeError | undefined): void;
  /** Open watches. */
  readonly watches: number;
}

const NEWS_MILLISECONDS = 5000;

export function createMemoryApi(): MemoryApi {
  const collections = new Map(Object.values(KINDS).map(({ path }) => [path as string, new Map<string, ApiObject>()]));
  const failures = new Map<string, KubeError>();
  const events: KubeObject[] = [];
  let version = 1;
  const objectsAt = (path: string) => {
    const failure = failures.get(path);
    if (failure !== undefined) throw failure;
    const objects = collections.get(path);
    if (objects === undefined) throw new KubeError(404, 'NotFound', `GET ${path}: 404`);
    return objects;
  };
  /** The list for a request about one node or VM. */
  const chosen = ({ path, query }: ListCall): readonly object[] => {
    const selector = String(query['fieldSelector'] ?? '');
    if (path.endsWith('/events')) return events.filter(fieldSelector(EVENTS, selector));
    if (path.includes('/namespaces/') && path.endsWith('/virtualmachineinstances')) {
      return [].filter(fieldSelector(VIRTUAL_MACHINE_INSTANCES, selector));
    }
    const objects = [...objectsAt(path).values()] as KubeObject[];
    return selector === '' ? objects : objects.filter(fieldSelector(NODES, selector));
  };
  const api = createApi((call) => ({ items: chosen(call) }));
  const keyOf = ({ metadata: { namespace = '', name = '' } }: ApiObject) => `${namespace}/${name}`;
  const tell = (kind: Kind, type: string, object: ApiObject) => {
    const metadata = { ...object.metadata, resourceVersion: String(++version) };
    api.push(KINDS[kind].path, type, { ...object, metadata });
  };
  // In place of the Leases that agents renew: a watch without any news is one that hangs.
  const news = () => {
    const bookmark = { metadata: { resourceVersion: String(version) } };
    for (const path of api.watchedPaths()) api.push(path, 'BOOKMARK', bookmark);
  };
  setInterval(news, NEWS_MILLISECONDS).unref();
  const refuse = async () => {
    throw new Error('the console writes nothing');
  };

  return {
    client: {
      get: (path, options) => api.client.get(path, options),
      async watch(path, options) {
        objectsAt(path);
        return api.client.watch(path, options);
      },
      create: refuse,
      replace: refuse,
      patch: refuse,
      delete: refuse,
      close: async () => undefined,
    },
    put(kind, object) {
      const objects = collections.get(KINDS[kind].path)!;
      const type = objects.has(keyOf(object)) ? 'MODIFIED' : 'ADDED';
      objects.set(keyOf(object), object);
      tell(kind, type, object);
    },
    remove(kind, object) {
      collections.get(KINDS[kind].path)!.delete(keyOf(object));
      tell(kind, 'DELETED', object);
    },
    event: (event) => void events.push(event as KubeObject),
    fail(kind, error) {
      const { path } = KINDS[kind];
      if (error === undefined) failures.delete(path);
      else failures.set(path, error);
      api.end(path);
    },
    get watches() {
      return api.watchedPaths().length;
    },
  };
}
