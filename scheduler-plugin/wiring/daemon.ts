import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { apiAccess } from '../../kube/api-access.ts';
import { createKubeClient } from '../../kube/client.ts';
import { createEventRecorder } from '../../kube/events.ts';
import { SERVICE } from '../../model/names.ts';
import { parseNames } from '../../runtime/client-names.ts';
import { apiServerAddress } from '../../runtime/config.ts';
import type { Daemon } from '../../runtime/daemon.ts';
import { createHttpServer } from '../../runtime/http-server.ts';
import { parseListenAddress } from '../../runtime/listen-address.ts';
import type { Logger } from '../../runtime/log.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import { createRequestBodies } from '../../runtime/request-bodies.ts';
import { registerServerMetrics } from '../../runtime/server-metrics.ts';
import { createServingDaemon } from '../../runtime/serving-daemon.ts';
import { monotonicSeconds, sleep } from '../../runtime/time.ts';
import { VERSION } from '../../runtime/version.ts';
import { createGuard } from '../access/guard.ts';
import { createTokenAccess } from '../access/token-access.ts';
import { createExplainer } from '../extender/explain.ts';
import { createDecisions } from '../filter/decisions.ts';
import { createExtenderApp, type ExtenderApp, LARGEST_BODY } from '../http/app.ts';
import { createExplainServer } from '../http/explain-server.ts';
import { createElectedReplica } from '../replica/elected.ts';
import type { Replica } from '../replica/replica.ts';
import { createSchedulerLeaseReplica } from '../replica/scheduler-lease.ts';
import { createExtenderMetrics, type ExtenderMetrics } from '../telemetry/metrics.ts';
import { type SchedulerPluginConfig, SERVICE_ADDRESS, SIDECAR_ADDRESS } from './config.ts';
import { createDecider, type Decider } from './decider.ts';

/** Maximum connections: schedulers have a few. */
const CONNECTIONS = 64;
/** Seconds that a stopping replica waits until the pods with reservations are bound. */
const RESERVATIONS_KEPT = 4;

/** Wires the scheduler extender together. @throws ConfigError if there is no usable way to the API server */
export function createSchedulerPlugin(config: SchedulerPluginConfig, log: Logger): Daemon {
  const now = monotonicSeconds;
  const { kubeconfig } = config;
  const access = apiAccess({ kubeconfig, ...apiServerAddress() });
  const client = createKubeClient(access, `${SERVICE}/${VERSION}`);
  const registry = createRegistry();
  const metrics = createExtenderMetrics(registry);
  const events = createEventRecorder({ client, component: SERVICE, log, now });
  const decisions = createDecisions(Date.now);
  const isActive = () => replica.isActive();
  const mayAnswer = () => replica.mayAnswer();
  const decider = createDecider({ config, client, events, decisions, metrics, isActive, mayAnswer, log, now });
  const { extender, cluster } = decider;
  const explainer = createExplainer({ extender, decisions, client, isActive });
  const bodies = createRequestBodies({ largest: LARGEST_BODY });
  const { unpredictable } = config;
  const called = () => replica.called();
  const routes = { extender, explainer, called, unpredictable, bodies, metrics, log };
  const tokenAccess = createTokenAccess({ client, log, now });
  const guard = createGuard({ isKnown: (socket) => server.isKnown(socket), access: tokenAccess });
  const app = createExtenderApp({ ...routes, guard });
  const listening = { ...addressOf(config), certificate: certificateOf(config), connections: CONNECTIONS };
  const server = createHttpServer({ handler: app.handler, ...listening, anonymousClients: true, log });
  registerServerMetrics(registry, 'plumbline_extender', { bodies, server });
  const identity = `${config.podName ?? hostname()}_${randomBytes(4).toString('hex')}`;
  const shared = {
    client,
    onActive: () => decider.becameActive(),
    onPassive: () => app.closeSockets(),
    log,
    now,
  };
  const replica =
    config.mode === 'sidecar'
      ? createSchedulerLeaseReplica({
          ...shared,
          lease: config.schedulerLease,
          hostName: config.podName ?? hostname(),
          // A kube-scheduler that no longer leads binds nothing, so its reservations are void.
          catchUp: (signal) => cluster.catchUp(signal),
        })
      : createElectedReplica({
          ...shared,
          config,
          identity,
          port: () => server.port,
          record: decider.reservationRecord,
          catchUp: (signal) => cluster.catchUp(signal, decider.reservationRecord.restore),
        });

  const daemon = createServingDaemon({
    server,
    probes: { host: config.probeHost, port: config.probePort },
    notReady: () => cluster.missing ?? (replica.settled ? undefined : 'no active replica is known yet'),
    registry,
    async run(signal) {
      const watching = Promise.all([cluster.run(signal), decider.masks.run(signal)]);
      while (cluster.missing !== undefined && !signal.aborted) await sleep(0.02, signal).catch(() => undefined);
      await Promise.all([watching, keepGauges(decider, replica, metrics, now, signal), replica.run(signal)]);
    },
    async close() {
      decider.stop();
      await events.flush();
      await client.close();
    },
    log,
  });
  const explaining = explainServerOf(config, createExtenderApp(routes), log);
  return {
    async start() {
      if (config.mode === 'service' && config.clientCaFile === '')
        log.warn('client certificates not required: --client-ca-file is empty');
      await daemon.start();
      await explaining?.start();
    },
    async stop() {
      await explaining?.stop();
      if (config.mode === 'service') await handOver(decider, replica, now);
      await daemon.stop();
    },
  };
}

/** Only its own pod can reach a sidecar, so it serves plain HTTP on loopback. */
function addressOf({ mode, host, port }: SchedulerPluginConfig) {
  const defaults = mode === 'sidecar' ? SIDECAR_ADDRESS : SERVICE_ADDRESS;
  return { host: host ?? defaults.host, port: port ?? defaults.port };
}

function certificateOf({ mode, certFile, keyFile, clientCaFile, clientNames }: SchedulerPluginConfig) {
  if (mode === 'sidecar') return undefined;
  const clients = clientCaFile === '' ? {} : { clientCaFile, clientNames: parseNames(clientNames) };
  return { certFile, keyFile, ...clients };
}

/** A sidecar serves /explain on its only port. */
function explainServerOf({ mode, explainAddress }: SchedulerPluginConfig, app: ExtenderApp, log: Logger) {
  const address = parseListenAddress(explainAddress);
  return mode === 'sidecar' || address === undefined ? undefined : createExplainServer({ address, app, log });
}

/** Stops making reservations. Once the open ones are bound or withdrawn, another replica may take over. */
async function handOver({ extender, state }: Decider, replica: Replica, now: () => number): Promise<void> {
  extender.stopPromising();
  const deadline = now() + RESERVATIONS_KEPT;
  while (state.reservations.unbound > 0 && now() < deadline) {
    state.reservations.expire(now());
    await sleep(0.05);
  }
  await replica.release();
}

/** Ends expired reservations even without a call, and updates the gauges, once a second. */
async function keepGauges(
  { state: { reservations }, recheck }: Decider,
  replica: Replica,
  metrics: ExtenderMetrics,
  now: () => number,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    reservations.expire(now());
    metrics.reservations.set({ kind: 'unbound' }, reservations.unbound);
    metrics.reservations.set({ kind: 'all' }, reservations.size);
    metrics.active.set(replica.isActive() ? 1 : 0);
    metrics.waiting.set(recheck.waiting);
    await sleep(1, signal).catch(() => undefined);
  }
}
