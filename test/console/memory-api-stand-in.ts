import { KINDS, type Kind } from '../../console/server/kinds.ts';
import { type KubeClient, KubeError } from '../../kube/client.ts';
import { EVENTS, NODES, VIRTUAL_MACHINE_INSTANCES } from '../../sandbox/api-server/built-in-types.ts';
import { fieldSelector } from '../../sandbox/api-server/selectors.ts';
import type { KubeObject } from '../../sandbox/objects.ts';

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

interface Watch {
  push(event: object): void;
  end(): void;
}

const NEWS_MILLISECONDS = 5000;

export function createMemoryApi(): MemoryApi {
  const kinds = new Map(
    Object.values(KINDS).map(({ path }) => [
      path as string,
      { objects: new Map<string, ApiObject>(), open: new Set<Watch>() },
    ]),
  );
  const failures = new Map<string, KubeError>();
  const events: KubeObject[] = [];
  let version = 1;
  /** The list for a request about one node or VM. */
  const chosen = (path: string, query: Readonly<Record<string, unknown>> = {}): readonly object[] => {
    const selector = String(query['fieldSelector'] ?? '');
    if (path.endsWith('/events')) return events.filter(fieldSelector(EVENTS, selector));
    if (path.includes('/namespaces/') && path.endsWith('/virtualmachineinstances')) {
      return [].filter(fieldSelector(VIRTUAL_MACHINE_INSTANCES, selector));
    }
    const objects = [...of(path).objects.values()] as KubeObject[];
    return selector === '' ? objects : objects.filter(fieldSelector(NODES, selector));
  };
  const of = (path: string) => {
    const failure = failures.get(path);
    if (failure !== undefined) throw failure;
    const found = kinds.get(path);
    if (found === undefined) throw new KubeError(404, 'NotFound', `GET ${path}: 404`);
    return found;
  };
  const keyOf = ({ metadata: { namespace = '', name = '' } }: ApiObject) => `${namespace}/${name}`;
  const tell = (kind: Kind, type: string, object: ApiObject) => {
    const stamped = { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } };
    for (const watch of kinds.get(KINDS[kind].path)?.open ?? []) watch.push({ type, object: stamped });
  };
  // In place of the Leases that agents renew: a watch without any news is one that hangs.
  const news = () => {
    const bookmark = { type: 'BOOKMARK', object: { metadata: { resourceVersion: String(version) } } };
    for (const { open } of kinds.values()) for (const watch of open) watch.push(bookmark);
  };
  setInterval(news, NEWS_MILLISECONDS).unref();
  const refuse = async () => {
    throw new Error('the console writes nothing');
  };

  return {
    client: {
      get: async (path, options) => ({
        metadata: { resourceVersion: String(version) },
        items: chosen(path, options?.query),
      }),
      async watch(path, { signal }) {
        const { open } = of(path);
        const queued: object[] = [];
        let wake = () => {};
        let ended = false;
        const watch: Watch = {
          push(event) {
            queued.push(event);
            wake();
          },
          end() {
            ended = true;
            open.delete(watch);
            wake();
          },
        };
        open.add(watch);
        signal?.addEventListener('abort', () => watch.end());
        return (async function* () {
          while (!ended) {
            for (let event = queued.shift(); event; event = queued.shift()) {
              yield Buffer.from(`${JSON.stringify(event)}\n`);
            }
            if (ended) return;
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
          }
        })();
      },
      create: refuse,
      replace: refuse,
      patch: refuse,
      delete: refuse,
      close: async () => undefined,
    },
    put(kind, object) {
      const { objects } = kinds.get(KINDS[kind].path)!;
      const type = objects.has(keyOf(object)) ? 'MODIFIED' : 'ADDED';
      objects.set(keyOf(object), object);
      tell(kind, type, object);
    },
    remove(kind, object) {
      kinds.get(KINDS[kind].path)!.objects.delete(keyOf(object));
      tell(kind, 'DELETED', object);
    },
    event: (event) => void events.push(event as KubeObject),
    fail(kind, error) {
      const { path } = KINDS[kind];
      if (error === undefined) failures.delete(path);
      else failures.set(path, error);
      for (const watch of [...kinds.get(path)!.open]) watch.end();
    },
    get watches() {
      return [...kinds.values()].reduce((sum, { open }) => sum + open.size, 0);
    },
  };
}
