import { type KubeClient, KubeError, type RequestOptions } from '../../../kube/client.ts';

interface Item {
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

export interface ScriptedLists {
  readonly client: KubeClient;
  /** Every list that was asked for, with its query. */
  readonly asked: { readonly path: string; readonly query: RequestOptions['query'] }[];
  /** Sends an event to the watch, and waits until it is processed. */
  send(path: string, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: object): Promise<void>;
  /** Answers lists that were held. */
  release(path: string): Promise<void>;
}

/** Runs all work that does not wait for a timer. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 8; i++) await new Promise((resolve) => setImmediate(resolve));
}

interface Queue {
  readonly lines: string[];
  /** Makes the watch read the lines. */
  wake: () => void;
}

function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
}

/**
 * An API server that has these lists and no others, without a network.
 * @param held paths whose lists are answered when they are released
 */
export function scriptedLists(lists: Readonly<Record<string, readonly Item[]>>, held: string[] = []): ScriptedLists {
  const asked: ScriptedLists['asked'] = [];
  const gates = new Map(held.map((path) => [path, gate()]));
  const queues = new Map<string, Queue>();
  const client = {
    async get(path: string, options: RequestOptions = {}) {
      asked.push({ path, query: options.query });
      await gates.get(path)?.opened;
      const items = lists[path];
      if (items === undefined) throw new KubeError(404, 'NotFound', `${path} not found`);
      return { metadata: { resourceVersion: '1' }, items };
    },
    async watch(path: string, { signal }: RequestOptions) {
      const queue: Queue = { lines: [], wake: () => undefined };
      queues.set(path, queue);
      signal?.addEventListener('abort', () => queue.wake());
      return (async function* () {
        while (!signal?.aborted) {
          for (const line of queue.lines.splice(0)) yield Buffer.from(`${line}\n`);
          await new Promise<void>((resolve) => {
            queue.wake = resolve;
          });
        }
      })();
    },
  } as unknown as KubeClient;
  return {
    client,
    asked,
    async send(path, type, object) {
      const queue = queues.get(path);
      if (queue === undefined) throw new Error(`nothing watches ${path}`);
      queue.lines.push(JSON.stringify({ type, object }));
      queue.wake();
      await settle();
    },
    async release(path) {
      gates.get(path)?.open();
      await settle();
    },
  };
}
