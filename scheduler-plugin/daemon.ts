import { createKubeClient } from '../kube/client.ts';
import type { Daemon } from '../runtime/daemon.ts';
import { createHttpServer } from '../runtime/http-server.ts';
import type { Logger } from '../runtime/log.ts';
import { createRegistry } from '../runtime/metrics.ts';
import { createProbeServer } from '../runtime/probes.ts';
import { monotonicSeconds, sleep } from '../runtime/time.ts';
import { VERSION } from '../runtime/version.ts';
import { createExtenderApp } from './app.ts';
import { createCluster } from './cluster.ts';
import type { SchedulerPluginConfig } from './config.ts';
import { createDpuHealth } from './dpu-health.ts';
import { createExtender } from './extender.ts';
import { createExtenderMetrics } from './metrics.ts';
import { createRecheck } from './recheck.ts';

/** Seconds between turning unready and refusing connections. */
const DRAIN_NOTICE = 2;

/** Wires the scheduler extender together. */
export function createSchedulerPlugin(config: SchedulerPluginConfig, log: Logger): Daemon {
  const now = monotonicSeconds;
  const client = createKubeClient({
    kubeconfig: config.kubeconfig,
    userAgent: `plumbline-scheduler-plugin/${VERSION}`,
  });
  const registry = createRegistry();
  const metrics = createExtenderMetrics(registry);
  const recheck = createRecheck({ client, log, now });
  const dpuHealth = createDpuHealth({
    client,
    namespace: config.dpuLeaseNamespace,
    whenUnknown: config.dpuUnknown,
    onFlip: (node, { ready }) => {
      if (ready) recheck.improved(node);
    },
    log,
    now,
  });
  const cluster = createCluster({
    client,
    dpuLeaseNamespace: config.dpuLeaseNamespace,
    listeners: {
      nodeChanged: (node) => recheck.improved(node),
      dpuLeaseChanged: (node, view) => dpuHealth.changed(node, view),
      podSettled: (uid) => recheck.settled(uid),
    },
    log,
    now,
  });
  const extender = createExtender({ cluster, dpuHealth, recheck, unpredictable: config.unpredictable, metrics });
  const server = createHttpServer({
    handler: createExtenderApp({ extender, metrics, log }),
    host: config.host,
    port: config.port,
    certificate: { certFile: config.certFile, keyFile: config.keyFile, clientCaFile: config.clientCaFile },
    log,
  });
  let stopping = false;
  const probeServer = createProbeServer({
    host: config.probeHost,
    port: config.probePort,
    notReady: () => (stopping ? 'stopping' : cluster.missing),
    registry,
    log,
  });
  const running = new AbortController();

  return {
    async start() {
      await probeServer.start();
      await server.start();
      void cluster.run(running.signal);
      log.info({ port: server.port, probePort: probeServer.port }, 'serving the scheduler');
    },
    async stop() {
      stopping = true;
      await sleep(DRAIN_NOTICE);
      await server.stop();
      running.abort();
      recheck.stop();
      dpuHealth.stop();
      await probeServer.stop(0);
      await client.close();
    },
  };
}
