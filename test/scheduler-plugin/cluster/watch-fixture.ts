import type { KubeClient } from '../../../kube/client.ts';
import { Cluster } from '../../../scheduler-plugin/cluster/cluster.ts';
import { ClusterState } from '../../../scheduler-plugin/cluster/cluster-state.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { silent } from '../../support/logger.ts';

export interface ListCall {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
}
interface Page {
  readonly items: readonly unknown[] | null;
  /** The token of the next page. */
  readonly continue?: string;
}

/** Pushed events arrive through the watches. @param pageOf the answer to each list; lists are empty by default */
export function createApi(pageOf: (call: ListCall) => Page = () => ({ items: [] })) {
  const pushes = new Map<string, (event: object) => void>();
  const client = {
    async get(path: string, { query = {} }: Partial<ListCall> = {}) {
      const { items, ...next } = pageOf({ path, query });
      return { metadata: { resourceVersion: '1', ...next }, items };
    },
    async watch(path: string, { signal }: { signal?: AbortSignal }) {
      const events: object[] = [];
      let wake = () => {};
      pushes.set(path, (event) => {
        events.push(event);
        wake();
      });
      signal?.addEventListener('abort', () => wake());
      return (async function* () {
        while (!signal?.aborted) {
          for (let event = events.shift(); event; event = events.shift()) {
            yield Buffer.from(`${JSON.stringify(event)}\n`);
          }
          // The reader may have aborted while it processed the last event.
          if (signal?.aborted) return;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        }
      })();
    },
  };
  return {
    client: client as unknown as KubeClient,
    watched: (path: string) => pushes.has(path),
    push: (path: string, type: string, object: object) => pushes.get(path)?.({ type, object }),
  };
}

/** A cluster with an API server, and a clock that stands still. */
export function startCluster(pageOf?: Parameters<typeof createApi>[0]) {
  const api = createApi(pageOf);
  const state = new ClusterState(silent);
  const clock = { now: 1000 };
  const cluster = new Cluster({
    client: api.client,
    state,
    reader: new NeedsReader('all'),
    dpuLeaseNamespace: 'ovn-kubernetes',
    log: silent,
    now: () => clock.now,
  });
  const ending = new AbortController();
  const running = cluster.run(ending.signal);
  const end = async () => {
    ending.abort();
    await running;
  };
  return { api, state, clock, cluster, end };
}
