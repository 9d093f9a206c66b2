import { createKubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import { createEventRecorder } from '../kube/events.ts';
import { networkAttachmentDefinition } from '../kube/resources.ts';
import type { Daemon } from '../runtime/daemon.ts';
import { createHttpServer } from '../runtime/http-server.ts';
import type { Logger } from '../runtime/log.ts';
import { createRegistry } from '../runtime/metrics.ts';
import { createProbeServer } from '../runtime/probes.ts';
import { monotonicSeconds, sleep } from '../runtime/time.ts';
import { VERSION } from '../runtime/version.ts';
import { createWebhookApp } from './app.ts';
import { createClusterView } from './cluster-view.ts';
import type { WebhookConfig } from './config.ts';
import type { FetchNad } from './launcher-networks.ts';
import { createWebhookMetrics } from './metrics.ts';
import { createPodReviewer } from './review-pod.ts';
import { createVmiLookup } from './vmi-lookup.ts';

/** Seconds between turning unready and refusing connections: endpoints take that long to forget a pod. */
const DRAIN_NOTICE = 2;

/** Wires the webhook together. */
export function createWebhook(config: WebhookConfig, log: Logger): Daemon {
  const now = monotonicSeconds;
  const client = createKubeClient({ kubeconfig: config.kubeconfig, userAgent: `plumbline-webhook/${VERSION}` });
  const registry = createRegistry();
  const view = createClusterView({ client, log, now });
  const events = createEventRecorder({ client, component: 'plumbline-webhook', log, now });
  const fetchNad: FetchNad = async ({ namespace, name }) => {
    const path = `/apis/k8s.cni.cncf.io/v1/namespaces/${namespace}/network-attachment-definitions/${name}`;
    try {
      const { metadata, spec } = networkAttachmentDefinition.parse(
        await client.get(path, { timeout: config.lookupTimeout }),
      );
      return { metadata, spec: { config: spec?.config } };
    } catch (err) {
      if (!isNotFound(err)) log.warn({ err, namespace, name }, 'could not read a network attachment definition');
      return undefined;
    }
  };
  const reviewPod = createPodReviewer({
    lookUpVmi: createVmiLookup(client, config.lookupTimeout),
    fetchNad,
    view,
    events,
    gate: config.fullPcpusOnly,
  });
  const server = createHttpServer({
    handler: createWebhookApp({ reviewPod, metrics: createWebhookMetrics(registry), log }),
    host: config.host,
    port: config.port,
    certificate: { certFile: config.certFile, keyFile: config.keyFile },
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
