import { apiAccess } from '../kube/api-access.ts';
import { createApiClient } from '../kube/api-client.ts';
import { createEventRecorder } from '../kube/events.ts';
import type { ConfiguredContext } from '../model/networks/context-file.ts';
import type { Daemon } from '../runtime/daemon.ts';
import { createHttpServer } from '../runtime/http-server.ts';
import type { Logger } from '../runtime/log.ts';
import { createRegistry } from '../runtime/metrics.ts';
import { createServingDaemon } from '../runtime/serving-daemon.ts';
import { monotonicSeconds } from '../runtime/time.ts';
import { VERSION } from '../runtime/version.ts';
import { createWebhookApp } from './app.ts';
import { createClusterView } from './cluster/cluster-view.ts';
import type { WebhookConfig } from './config.ts';
import { createWebhookMetrics } from './metrics.ts';
import { createPodMutation } from './pods/mutate-pod.ts';
import { createNadFetch } from './pods/nad-fetch.ts';
import { createPodValidation } from './pods/validate-pod.ts';
import { createVmiLookup } from './pods/vmi-lookup.ts';
import { createVmiMutation } from './vms/mutate-vmi.ts';
import { createVmValidation } from './vms/validate-vm.ts';

/** To the API server: the watches hold one each, and look-ups need some beside them. */
const CONNECTIONS = 16;

/** Wires the webhook together. @throws ConfigError if there is no usable way to the API server */
export function createWebhook(config: WebhookConfig, context: ConfiguredContext, log: Logger): Daemon {
  const now = monotonicSeconds;
  const { kubeconfig, apiHost: serviceHost, apiPort: servicePort } = config;
  const access = apiAccess({ kubeconfig, serviceHost, servicePort });
  const client = createApiClient(access, `plumbline-webhook/${VERSION}`, CONNECTIONS);
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
    mutateVmis: createVmiMutation(),
    validateVms: createVmValidation(options),
  };
  const server = createHttpServer({
    handler: createWebhookApp({ reviews, metrics: createWebhookMetrics(registry), log }),
    host: config.host,
    port: config.port,
    certificate: { certFile: config.certFile, keyFile: config.keyFile, clientCaFile: config.clientCaFile },
    log,
  });
  return createServingDaemon({
    server,
    probes: { host: config.probeHost, port: config.probePort },
    notReady: () => (view.synced ? undefined : 'the caches are not synced yet'),
    registry,
    run: (signal) => view.run(signal),
    async close() {
      await events.flush();
      await client.close();
    },
    log,
  });
}
