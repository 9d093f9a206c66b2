import type { KubeClient } from '../../../kube/client.ts';
import { Cluster } from '../../../scheduler-plugin/cluster/cluster.ts';
import { ClusterState } from '../../../scheduler-plugin/cluster/cluster-state.ts';
import { NeedsReader } from '../../../scheduler-plugin/cluster/pod-needs.ts';
import { silent } from '../../support/logger.ts';

/** Lists are empty; pushed events arrive through the watches. */
export function createApi() {
  const pushes = new Map<string, (event: object) => void>();
  const queues = new Map<string, object[]>();
  const client = {
    get: async () => ({ metadata: { resourceVersion: '1' }, items: [] }),
    async watch(path: string, { signal }: { signal?: AbortSignal }) {
      const events: object[] = [];
      queues.set(path, events);
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
    /** The number of events that the watch has not read yet. */
    unread: (path: string) => queues.get(path)?.length ?? 0,
    watched: (path: string) => pushes.has(path),
    push: (path: string, type: string, object: object) => pushes.get(path)?.({ type, object }),
  };
}

/** A cluster with an empty API server, and a clock that stands still. */
export function startCluster() {
  const api = createApi();
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
