import { randomBytes } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { createKubeClient, type KubeClient } from '../kube/client.ts';
import { createEventRecorder } from '../kube/events.ts';
import type { Daemon } from '../runtime/daemon.ts';
import { createHttpServer } from '../runtime/http-server.ts';
import type { Logger } from '../runtime/log.ts';
import { createRegistry } from '../runtime/metrics.ts';
import { createServingDaemon } from '../runtime/serving-daemon.ts';
import { monotonicSeconds, sleep } from '../runtime/time.ts';
import { VERSION } from '../runtime/version.ts';
import { type ActiveReplica, createActiveReplica } from './active-replica.ts';
import { createExtenderApp } from './app.ts';
import type { SchedulerPluginConfig } from './config.ts';
import { createDecider, type Decider } from './decider.ts';
import { createExplainer } from './explain.ts';
import { createDecisions, type Decisions } from './filter/decisions.ts';
import { createExtenderMetrics, type ExtenderMetrics } from './metrics.ts';
import { parseConsoleAddress } from './web-console/address.ts';
import { createFeed } from './web-console/feed.ts';
import { type Console, createConsole } from './web-console/server.ts';

const COMPONENT = 'plumbline-scheduler-plugin';
/** Seconds that a replica on its way out waits for the pods it has promised room to be bound. */
const PROMISES_KEPT = 4;

/** Wires the scheduler extender together. */
export function createSchedulerPlugin(config: SchedulerPluginConfig, log: Logger): Daemon {
  const now = monotonicSeconds;
  const client = createKubeClient({ kubeconfig: config.kubeconfig, userAgent: `${COMPONENT}/${VERSION}` });
  const registry = createRegistry();
  const metrics = createExtenderMetrics(registry);
  const events = createEventRecorder({ client, component: COMPONENT, log, now });
  const decisions = createDecisions(Date.now);
  const isActive = () => active.isActive();
  const decider = createDecider({ config, client, events, decisions, metrics, isActive, log, now });
  const { extender, cluster } = decider;
  const explainer = createExplainer({ extender, decisions, client, isActive });
  const app = createExtenderApp({ extender, explainer, unpredictable: config.unpredictable, metrics, log });
  const { certFile, keyFile, clientCaFile, host, port } = config;
  const certificate = { certFile, keyFile, clientCaFile };
  const server = createHttpServer({ handler: app.handler, host, port, certificate, log });
  const identity = `${config.podName ?? hostname()}_${randomBytes(4).toString('hex')}`;
  const active = createActiveReplica({
    config,
    client,
    identity,
    port: () => server.port,
    catchUp: (signal) => cluster.catchUp(signal),
    onActive: () => decider.becameActive(),
    onPassive: () => app.closeSockets(),
    log,
    now,
  });

  const daemon = createServingDaemon({
    server,
    probes: { host: config.probeHost, port: config.probePort },
    notReady: () => cluster.missing ?? (active.settled ? undefined : 'it is not known yet which replica is active'),
    registry,
    async run(signal) {
      const watching = Promise.all([cluster.run(signal), decider.masks.run(signal)]);
      while (cluster.missing !== undefined && !signal.aborted) await sleep(0.02, signal).catch(() => undefined);
      await Promise.all([watching, keepGauges(decider, active, metrics, now, signal), active.run(signal)]);
    },
    async close() {
      decider.stop();
      await events.flush();
      await client.close();
    },
    log,
  });
  const page = consoleOf(config, decider, decisions, { active, identity, client, log });
  return {
    async start() {
      await daemon.start();
      await page?.start();
    },
    async stop() {
      await page?.stop();
      await handOver(decider, active, now);
      await daemon.stop();
    },
  };
}

interface ConsoleParts {
  readonly active: ActiveReplica;
  readonly identity: string;
  readonly client: KubeClient;
  readonly log: Logger;
}

/** The web page; its files are beside the program. */
function consoleOf(
  { consoleAddress }: SchedulerPluginConfig,
  { state, cluster, dpuHealth, extender }: Decider,
  decisions: Decisions,
  { active, identity, client, log }: ConsoleParts,
): Console | undefined {
  const address = parseConsoleAddress(consoleAddress);
  if (address === undefined) return undefined;
  const feed = createFeed({
    state,
    cluster,
    dpuHealth,
    decisions,
    status: () => ({
      active: active.isActive(),
      holder: active.holder,
      missing: cluster.missing,
      identity,
      version: VERSION,
    }),
  });
  const assets = join(dirname(realpathSync(process.argv[1] ?? '.')), 'console');
  return createConsole({ address, feed, assets, extender, client, log });
}

/** No new promises; then, once those given are kept or withdrawn, another replica may begin. */
async function handOver({ extender, state }: Decider, active: ActiveReplica, now: () => number): Promise<void> {
  extender.stopPromising();
  const deadline = now() + PROMISES_KEPT;
  while (state.ledger.unbound > 0 && now() < deadline) {
    state.ledger.expire(now());
    await sleep(0.05);
  }
  await active.release();
}

/** Ends promises whose time is over even if nobody calls, and says once a second how things stand. */
async function keepGauges(
  { state: { ledger }, recheck }: Decider,
  active: ActiveReplica,
  metrics: ExtenderMetrics,
  now: () => number,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    ledger.expire(now());
    metrics.claims.set({ kind: 'unbound' }, ledger.unbound);
    metrics.claims.set({ kind: 'all' }, ledger.size);
    metrics.active.set(active.isActive() ? 1 : 0);
    metrics.waiting.set(recheck.waiting);
    await sleep(1, signal).catch(() => undefined);
  }
}
