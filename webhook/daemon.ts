import { createKubeClient } from '../kube/api-transport.ts';
import { apiAccess } from '../kube/daemon-access.ts';
import { few } from '../model/errors.ts';
import type { NetworkRef } from '../model/networks/attachments.ts';
import type { ConfiguredContext } from '../model/networks/context.ts';
import type { ReportFault } from '../model/report/check.ts';
import { parseNames } from '../runtime/certificate.ts';
import { VERSION } from '../runtime/config.ts';
import { createServingDaemon } from '../runtime/daemon.ts';
import { HttpServer } from '../runtime/http-server.ts';
import { createRegistry, registerServerMetrics } from '../runtime/metrics.ts';
import { Durations } from '../runtime/problem-log.ts';
import { monotonicSeconds } from '../runtime/time.ts';
import { createWebhookApp, createWebhookMetrics, type WebhookMetrics } from './app.ts';
import { createVmiLookup } from './cluster/cluster-facts.ts';
import { createClusterView } from './cluster/cluster-view.ts';
import { DefinitionLookups } from './cluster/definition-lookups.ts';
import { createRequirement, createRequirementReview } from './cluster/requirement.ts';
import { createSchedulerLease } from './cluster/scheduler-lease.ts';
import type { WebhookConfig } from './config.ts';
import { createPodMutation, createPodRouting, createPodValidation } from './pods/mutate-pod.ts';
import type { WebhookLogger } from './telemetry/log-messages.ts';
import { createVmiMutation } from './vms/mutate-vmi.ts';
import { createVmValidation } from './vms/validate-vm.ts';

/** Connections to the API server: one for each watch and some for lookups. */
const MAX_API_CONNECTIONS = 16;

/** Longest wait for a VMI; half as long for network definitions. Both are within timeoutSeconds of the webhooks. */
const VMI_TIMEOUT_SECONDS = 6;

/** Wires the webhook together. @throws ConfigError without a usable kubeconfig or service account */
export async function createWebhook(config: WebhookConfig, context: ConfiguredContext, log: WebhookLogger) {
  const nowSeconds = monotonicSeconds;
  const access = await apiAccess(config.kubeconfig);
  const client = createKubeClient(access, `plumbline-webhook/${VERSION}`, MAX_API_CONNECTIONS);
  const registry = createRegistry();
  const metrics = createWebhookMetrics(registry);
  const onQuarantined = quarantineLog(metrics, log);
  const view = createClusterView(context, { client, log, nowSeconds, onQuarantined });
  const scheduler = createSchedulerLease(config.schedulerName, { client, log, nowSeconds });
  const notReady = () => view.problem;
  const lookUp = createVmiLookup({ client, timeout: VMI_TIMEOUT_SECONDS, nowSeconds, find: view.findVmi });
  const definitions = new DefinitionLookups({ client, timeoutSeconds: VMI_TIMEOUT_SECONDS / 2, log, nowSeconds });
  const options = {
    // The API server reuses connections to a pod that is not ready. Launchers are refused then, and created again soon.
    lookUpVmi: async (...args: Parameters<typeof lookUp>) =>
      view.problem === undefined ? lookUp(...args) : ({ kind: 'unreadable', why: view.problem } as const),
    fetchNad: (ref: NetworkRef) => definitions.find(ref),
    view,
    log,
    gate: config.fullPcpusOnly,
    policy: config.alignment,
    oversized: config.oversized,
    globalNetworkNamespaces: parseNames(config.globalNetworkNamespaces),
    route: scheduler,
  };
  const onChange = (required: boolean) => metrics.required.set(required ? 1 : 0);
  const requirement = createRequirement({ client, notReady, onChange, log });
  const reviews = {
    mutatePods: createPodMutation(options),
    routePods: createPodRouting(options.route),
    validatePods: createPodValidation(options),
    mutateVmis: createVmiMutation(),
    validateVms: createVmValidation(options),
    require: createRequirementReview(notReady),
  };
  const { handler, bodies } = createWebhookApp({ reviews, metrics, log });
  const { host, port, certFile, keyFile, clientCaFile } = config;
  const certificate = { certFile, keyFile, clientCaFile, clientNames: parseNames(config.clientNames) };
  const server = new HttpServer({ handler, host, port, certificate, log });
  registerServerMetrics(registry, 'plumbline_webhook', { bodies, server });
  return createServingDaemon({
    server,
    probes: { host: config.probeHost, port: config.probePort },
    notReady,
    registry,
    run: async (signal) => void (await Promise.all([view.run(signal), scheduler.run(signal), requirement.run(signal)])),
    close: () => client.close(),
    log,
  });
}

/** Reasons in one line of the log, and characters of each. */
const MAX_REASONS = 5;
const MAX_REASON_CHARACTERS = 256;

function quarantineLog(metrics: WebhookMetrics, log: WebhookLogger) {
  let lastNodes = '';
  const durations = new Durations();
  return (faults: ReadonlyMap<string, ReportFault>): void => {
    metrics.quarantinedReports.set(faults.size);
    const nodes = [...faults.keys()].slice(0, 10).join(',');
    if (nodes === lastNodes) return;
    lastNodes = nodes;
    if (faults.size === 0) {
      log.info(durations.end(''), 'all node reports accepted');
      return;
    }
    durations.begin('');
    const messages = new Set([...faults.values()].map(({ message }) => message));
    const reason = few([...messages], MAX_REASONS, MAX_REASON_CHARACTERS).join('; ');
    log.warn({ nodes, reports: faults.size, reason }, 'implausible node reports ignored');
  };
}
