import type { RequestListener } from 'node:http';
import { hostname } from 'node:os';
import { createKubeClient } from '../../kube/api-transport.ts';
import { apiAccess } from '../../kube/daemon-access.ts';
import { ApiEventRecorder } from '../../kube/events.ts';
import { SERVICE } from '../../model/names.ts';
import { VERSION } from '../../runtime/config.ts';
import { createServingDaemon, type Daemon } from '../../runtime/daemon.ts';
import { HttpServer, isListenerHost } from '../../runtime/http-server.ts';
import { createRegistry, registerServerMetrics } from '../../runtime/metrics.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { Cluster } from '../cluster/cluster.ts';
import { ClusterState } from '../cluster/cluster-state.ts';
import { NeedsReader } from '../cluster/pod-needs.ts';
import { createExplainer } from '../extender/explain.ts';
import { Decisions } from '../filter/decisions.ts';
import { createExtenderApp } from '../http/app.ts';
import { SchedulerLeaseReplica } from '../replica/scheduler-lease.ts';
import type { ExtenderLogger } from '../telemetry/log-messages.ts';
import { createExtenderMetrics } from '../telemetry/metrics.ts';
import type { SchedulerPluginConfig } from './config.ts';
import { createDecider } from './decider.ts';

/** A scheduler has a few. */
const MAX_CONNECTIONS = 64;

/** @throws ConfigError if there is no usable way to the API server */
export async function createSchedulerPlugin(config: SchedulerPluginConfig, log: ExtenderLogger): Promise<Daemon> {
  const nowSeconds = monotonicSeconds;
  const access = await apiAccess(config.kubeconfig);
  const client = createKubeClient(access, `${SERVICE}/${VERSION}`);
  const registry = createRegistry();
  const metrics = createExtenderMetrics(registry);
  const events = new ApiEventRecorder({ client, component: SERVICE, log, nowSeconds });
  const decisions = new Decisions();
  const { unpredictable, host, port, dpuLeaseNamespace } = config;
  const state = new ClusterState(log, unpredictable === 'nearest');
  const reader = new NeedsReader(config.dpuScope, config.dpuExempt);
  const cluster = new Cluster({ client, state, reader, dpuLeaseNamespace, log, nowSeconds });
  const replica = new SchedulerLeaseReplica({
    client,
    lease: config.schedulerLease,
    hostName: config.podName ?? hostname(),
    // A kube-scheduler that no longer leads binds nothing, so its reservations are void.
    catchUp: (signal) => cluster.catchUp(signal),
    log,
    nowSeconds,
  });
  const decider = createDecider({
    config,
    client,
    reader,
    cluster,
    replica,
    events,
    decisions,
    metrics,
    log,
    nowSeconds,
  });
  replica.on('active', () => decider.becameActive());

  const { extender, recheck } = decider;
  const explainer = createExplainer({ extender, decisions, client, isActive: () => replica.isActive() });
  const called = () => replica.called();
  const app = createExtenderApp({ extender, explainer, called, unpredictable, metrics, log });
  const { bodies } = app;
  // Plain HTTP: only processes of its own pod or host can connect to a loopback address.
  const handler = onlyForHost(host, app.handler);
  const server = new HttpServer({ handler, host, port, connections: MAX_CONNECTIONS, log });
  registerServerMetrics(registry, 'plumbline_extender', { bodies, server });

  /** Ends expired reservations even without a call, and updates the gauges, once a second. */
  const keepGauges = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      state.reservations.expire(cluster.bindingsKnownUntil);
      state.reservations.expireBound(nowSeconds(), (node) => cluster.isReporting(node));
      metrics.reservations.set({ kind: 'unbound' }, state.reservations.unbound);
      metrics.reservations.set({ kind: 'all' }, state.reservations.size);
      metrics.active.set(replica.isActive() ? 1 : 0);
      metrics.waiting.set(recheck.waiting);
      metrics.silentAgents.set(cluster.silentAgents);
      await sleep(1, signal).catch(() => undefined);
    }
  };

  return createServingDaemon({
    server,
    probes: { host: config.probeHost, port: config.probePort },
    notReady: () => cluster.missing ?? replica.problem,
    registry,
    async run(signal) {
      const watching = decider.run(signal);
      while (cluster.missing !== undefined && !signal.aborted) await sleep(0.02, signal).catch(() => undefined);
      await Promise.all([watching, keepGauges(signal), replica.run(signal)]);
    },
    async close() {
      decider.stop();
      await events.flush();
      await client.close();
    },
    log,
  });
}

/** A browser on the machine of a port-forward can be tricked into requests for other sites here (DNS rebinding). */
function onlyForHost(host: string, handler: RequestListener): RequestListener {
  return (request, response) => {
    if (isListenerHost(request.headers.host, host)) return handler(request, response);
    response.writeHead(421, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
    response.end('plumbline: use the address 127.0.0.1 or localhost\n');
  };
}
