import { createKubeClient } from '../kube/client.ts';
import { createEventRecorder } from '../kube/events.ts';
import type { ConfiguredContext } from '../model/networks/context-file.ts';
import type { Daemon } from '../runtime/daemon.ts';
import { createHttpServer } from '../runtime/http-server.ts';
import type { Logger } from '../runtime/log.ts';
import { createRegistry } from '../runtime/metrics.ts';
import { createProbeServer } from '../runtime/probes.ts';
import { monotonicSeconds, sleep } from '../runtime/time.ts';
import { VERSION } from '../runtime/version.ts';
import { createWebhookApp } from './app.ts';
import { createClusterView } from './cluster/cluster-view.ts';
import type { WebhookConfig } from './config.ts';
import { createWebhookMetrics } from './metrics.ts';
import { createPodMutation } from './pods/mutate-pod.ts';
import { createNadFetch } from './pods/nad-fetch.ts';
import { createPodValidation } from './pods/validate-pod.ts';
import { createVmiLookup } from './pods/vmi-lookup.ts';
import { createVmValidation } from './vms/validate-vm.ts';

/** Seconds between turning unready and refusing connections: endpoints take that long to forget a pod. */
const DRAIN_NOTICE = 2;

/** Wires the webhook together. */
export function createWebhook(config: WebhookConfig, context: ConfiguredContext, log: Logger): Daemon {
  const now = monotonicSeconds;
  const client = createKubeClient({ kubeconfig: config.kubeconfig, userAgent: `plumbline-webhook/${VERSION}` });
  const registry = createRegistry();
  const view = createClusterView(context, { client, log, now });
  const events = createEventRecorder({ client, component: 'plumbline-webhook', log, now });
  const options = {
    lookUpVmi: createVmiLookup({ client, timeout: config.lookupTimeout, find: view.findVmi }),
    fetchNad: createNadFetch(client, config.lookupTimeout, log),
    view,
    events,
    gate: config.fullPcpusOnly,
    policy: config.alignment,
  };
  const reviews = {
    mutatePods: createPodMutation(options),
    validatePods: createPodValidation(options),
    validateVms: createVmValidation(options),
  };
  const server = createHttpServer({
    handler: createWebhookApp({ reviews, metrics: createWebhookMetrics(registry), log }),
    host: config.host,
    port: config.port,
    certificate: { certFile: config.certFile, keyFile: config.keyFile, clientCaFile: config.clientCaFile },
    log,
  });
  let stopping = false;
  const probeServer = createProbeServer({
    host: config.probeHost,
    port: config.probePort,
    notReady: () => (stopping ? 'stopping' : view.synced ? undefined : 'the caches are not synced yet'),
    registry,
    log,
  });
  const running = new AbortController();

  return {
    async start() {
      await probeServer.start();
      await server.start();
      void view.run(running.signal);
      log.info({ port: server.port, probePort: probeServer.port }, 'serving admission reviews');
    },
    async stop() {
      stopping = true;
      await sleep(DRAIN_NOTICE);
      await server.stop();
      running.abort();
      await events.flush();
      await probeServer.stop(0);
      await client.close();
    },
  };
}
