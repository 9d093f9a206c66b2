import { OWNER_LETTERS } from '../../diagnosis/owner-letters.ts';
import type { KubeClient } from '../../kube/client.ts';
import { VERSION } from '../../runtime/config.ts';
import { HttpServer, type ListenAddress } from '../../runtime/http-server.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { createCluster } from './cluster.ts';
import { Feed } from './feed.ts';
import { createHistories } from './history.ts';
import type { OptionalKind } from './kinds.ts';
import type { ConsoleLogger } from './log-messages.ts';
import type { QuestionSources } from './questions.ts';
import { createRoutes } from './routes.ts';

interface ConsoleOptions extends Omit<QuestionSources, 'histories'> {
  /** Only used for reads. Each kind in KINDS keeps a watch open. */
  readonly client: KubeClient;
  readonly address: ListenAddress;
  readonly assets: string;
  readonly without?: ReadonlySet<OptionalKind>;
  readonly log: ConsoleLogger;
}

/** Connection limit: a browser opens at most six, and 16 pages are served. */
const MAX_CONNECTIONS = 64;
const INTERVAL_SECONDS = 0.1;

/** It does not listen before `server.start` and sends no request before `run`. */
export function createConsole(options: ConsoleOptions) {
  const { client, address, assets, without = new Set<OptionalKind>(), log, ...sources } = options;
  const feed = new Feed();
  const cluster = createCluster({ client, without, feed, log, nowSeconds: monotonicSeconds });
  const histories = createHistories(client);
  const routes = createRoutes({ host: address.host, feed, assets, ...sources, histories, log });

  const updateFeed = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      const { leader, missing, forbidden } = cluster;
      const [problem, notReady] = [cluster.problem(), cluster.notReady()];
      const fixed = { version: VERSION, letters: OWNER_LETTERS };
      feed.update(cluster, { leader, missing, problem, notReady, ...fixed, without: [...forbidden] });
      await sleep(INTERVAL_SECONDS, signal).catch(() => undefined);
    }
  };

  return {
    server: new HttpServer({ handler: routes.handler, ...address, connections: MAX_CONNECTIONS, streams: true, log }),
    /** Follows the cluster until the signal; never rejects. */
    async run(signal: AbortSignal) {
      await Promise.all([cluster.run(signal), updateFeed(signal)]);
    },
    get missing() {
      return cluster.missing;
    },
    closeStreams: routes.close,
  };
}
