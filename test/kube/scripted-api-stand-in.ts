import { type KubeClient, KubeError } from '../../kube/client.ts';

export interface ListCall {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
}
interface Page {
  readonly items: readonly unknown[] | null;
  /** The token of the next page. */
  readonly continue?: string;
  readonly resourceVersion?: string;
}
type Pages = (call: ListCall) => Page | Promise<Page>;

/**
 * Pushed events arrive through the watches. @param pageOf the answer to each list; lists are empty by default
 * @param accept throws to refuse a watch
 */
export function createApi(pageOf: Pages = () => ({ items: [] }), accept: (call: ListCall) => void = () => undefined) {
  /** The open watch of each path. */
  const watches = new Map<string, { write(text: string): void; end(): void }>();
  const client = {
    async get(path: string, { query = {} }: Partial<ListCall> = {}) {
      const { items, ...next } = await pageOf({ path, query });
      return { metadata: { resourceVersion: '1', ...next }, items };
    },
    async watch(path: string, { query = {}, signal }: Partial<ListCall> & { signal?: AbortSignal }) {
      accept({ path, query });
      const texts: string[] = [];
      let wake = () => {};
      let isOpen = true;
      const watch = {
        write(text: string) {
          texts.push(text);
          wake();
        },
        end() {
          isOpen = false;
          if (watches.get(path) === watch) watches.delete(path);
          wake();
        },
      };
      watches.set(path, watch);
      signal?.addEventListener('abort', watch.end);
      return (async function* () {
        for (;;) {
          for (let text = texts.shift(); text !== undefined; text = texts.shift()) yield Buffer.from(text);
          signal?.throwIfAborted();
          if (!isOpen) return;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      })();
    },
  };
  return {
    client: client as unknown as KubeClient,
    watched: (path: string) => watches.has(path),
    watchedPaths: () => [...watches.keys()],
    push: (path: string, type: string, object: object) =>
      watches.get(path)?.write(`${JSON.stringify({ type, object })}\n`),
    /** A part of the stream. */
    write: (path: string, text: string) => watches.get(path)?.write(text),
    /** Ends the watch, as the API server does. */
    end: (path: string) => watches.get(path)?.end(),
  };
}

/** Runs all work that does not wait for a timer. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 8; i++) await new Promise((resolve) => setImmediate(resolve));
}

function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
}

export type ScriptedLists = ReturnType<typeof scriptedLists>;

/** Has these lists and no others, without a network. @param held paths whose lists wait until they are released */
export function scriptedLists(lists: Readonly<Record<string, readonly object[]>>, held: string[] = []) {
  const listCalls: ListCall[] = [];
  const gates = new Map(held.map((path) => [path, gate()]));
  const { client, watched, push } = createApi(async (call) => {
    listCalls.push(call);
    await gates.get(call.path)?.opened;
    const items = lists[call.path];
    if (items === undefined) throw new KubeError(404, 'NotFound', `${call.path} not found`);
    return { items };
  });
  return {
    client,
    /** Every list that was asked for, with its query. */
    listCalls,
    /** Sends an event to the watch, and waits until it is processed. */
    async send(path: string, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: object) {
      if (!watched(path)) throw new Error(`nothing watches ${path}`);
      push(path, type, object);
      await settle();
    },
    /** Answers lists that were held. */
    async release(path: string) {
      gates.get(path)?.open();
      await settle();
    },
  };
}
