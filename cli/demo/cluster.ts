import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { FINAL_WEBHOOK, NAMESPACE, NETWORKS_WEBHOOK, SCHEDULER_WEBHOOK, SERVICE, WEBHOOK } from '../../model/names.ts';
import {
  MUTATING_WEBHOOKS,
  NAMESPACES,
  SECRETS,
  VALIDATING_WEBHOOKS,
} from '../../sandbox/api-server/built-in-types.ts';
import type { Components } from '../../sandbox/api-server/openapi.ts';
import type { CertificateAuthority } from '../../sandbox/certificates.ts';
import type { LocalClient } from '../../sandbox/clients/local-client.ts';
import { createSandbox } from '../../sandbox/cluster/cluster.ts';
import type { EmulatedNode, NodeDescription } from '../../sandbox/cluster/emulated-node.ts';
import type { Identity } from '../../sandbox/cluster/identities.ts';
import type { KubeObject } from '../../sandbox/objects.ts';

export const SERVICES = { webhook: WEBHOOK, extender: SERVICE } as const;

/** The cluster that the steps run on: the embedded one, or another with the same parts. */
export interface DemoCluster {
  /** The administrator's way in. */
  readonly client: LocalClient;
  /** Issues serving certificates for daemons. */
  readonly authority: CertificateAuthority;
  /** @throws RangeError if there is no node of that name */
  node(name: string): EmulatedNode;
  start(): Promise<void>;
  /** Puts there what the daemons need: definitions, accounts, permissions. */
  prepare(): Promise<void>;
  /** Puts a certificate where cert-manager would: a Secret of the name that the manifests give it. */
  keepCertificate?(service: string, pair: { readonly cert: string; readonly key: string }): Promise<void>;
  /** Writes a kubeconfig file and returns its path. */
  kubeconfig(identity: Identity): Promise<string>;
  /** Has the API server call the webhook and a kube-scheduler ask the extender, as the shipped manifests say. */
  wire(ports: { readonly webhook: number; readonly extender: number }): Promise<void>;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** An empty directory for everything that is written. */
  readonly directory: string;
  readonly nodes: readonly NodeDescription[];
  /** Where manifests/ is. */
  readonly packageRoot: string;
  /**
   * sidecar: launchers are routed to a kube-scheduler of Plumbline's own, which asks the extender over plain HTTP; own: the
   * cluster's kube-scheduler asks it over TLS. Default: sidecar.
   */
  readonly scheduler?: 'sidecar' | 'own';
  /** Schemas of the types that the API server serves; the embedded one takes any field without them. */
  readonly components?: Components;
  /** Called with errors that no answer of the API carries. */
  readonly onFault: (error: unknown) => void;
}

/** The embedded cluster: it needs nothing but Node.js. */
export function createEmbeddedCluster({ packageRoot, scheduler = 'sidecar', ...options }: ClusterOptions): DemoCluster {
  const sandbox = createSandbox(options);
  return {
    client: sandbox.client,
    authority: sandbox.authority,
    node: (name) => sandbox.node(name),
    start: () => sandbox.start(),
    // Its API server serves Plumbline's kinds from the start and authorises every request.
    async prepare() {
      const metadata = { name: NAMESPACE };
      await sandbox.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata });
    },
    async keepCertificate(service, { cert, key }) {
      const base64 = (text: string) => Buffer.from(text).toString('base64');
      await sandbox.client.create(SECRETS, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `${service}-tls`, namespace: NAMESPACE },
        type: 'kubernetes.io/tls',
        // Without the CA, which is made for this cluster and lasts no longer than it needs to.
        data: { 'tls.crt': base64(cert), 'tls.key': base64(key) },
      });
    },
    kubeconfig: (identity) => sandbox.kubeconfig(identity),
    async wire({ webhook, extender }) {
      sandbox.route(NAMESPACE, SERVICES.webhook, { host: '127.0.0.1', port: webhook });
      sandbox.route(NAMESPACE, SERVICES.extender, { host: '127.0.0.1', port: extender });
      const caBundle = Buffer.from(sandbox.authority.cert).toString('base64');
      const mutating = await webhookConfiguration(packageRoot, 'mutating-webhook', caBundle);
      // Without its conditions the entry for launchers that ask is sent every launcher.
      const left = [NETWORKS_WEBHOOK, ...(scheduler === 'own' ? [SCHEDULER_WEBHOOK] : [])];
      mutating.webhooks = mutating.webhooks.filter(({ name }) => !left.includes(name));
      await sandbox.client.create(MUTATING_WEBHOOKS, mutating);
      const validating = await webhookConfiguration(packageRoot, 'validating-webhook', caBundle);
      validating.webhooks = validating.webhooks.filter(({ name }) => VALIDATED.includes(name));
      await sandbox.client.create(VALIDATING_WEBHOOKS, validating);
      if (scheduler === 'sidecar') {
        await sandbox.addScheduler(await sidecarConfiguration(packageRoot, extender));
        return;
      }
      const own = (await readManifest(packageRoot, 'scheduler/kube-scheduler-config.yaml')) as {
        extenders: { tlsConfig?: { caData?: string } }[];
      };
      for (const one of own.extenders) one.tlsConfig = { caData: caBundle };
      await sandbox.reconfigureScheduler(own);
    },
    stop: () => sandbox.stop(),
  };
}

/** VMs, and launchers as they are stored. The others choose pods by a condition alone, which the embedded API server has not. */
const VALIDATED = ['vms.plumbline.dev', FINAL_WEBHOOK];

type WebhookConfiguration = KubeObject & {
  webhooks: { name: string; clientConfig: { caBundle?: string }; matchConditions?: unknown }[];
};

/**
 * A shipped configuration without its conditions: the embedded API server has no CEL and refuses them. Without them the
 * webhook is only asked more often.
 */
async function webhookConfiguration(packageRoot: string, name: string, caBundle: string) {
  const configuration = (await readManifest(packageRoot, `base/webhook/${name}.yaml`)) as WebhookConfiguration;
  for (const one of configuration.webhooks) {
    // YAML's aliases are one object in several places.
    one.clientConfig = { ...one.clientConfig, caBundle };
    delete one.matchConditions;
  }
  return configuration;
}

/** The shipped configuration of Plumbline's kube-scheduler, with the port that the extender has here. */
export async function sidecarConfiguration(packageRoot: string, port: number): Promise<Record<string, unknown>> {
  const configuration = (await readManifest(packageRoot, 'base/scheduler/config.yaml')) as {
    extenders: { urlPrefix: string }[];
  };
  for (const one of configuration.extenders) one.urlPrefix = `http://127.0.0.1:${port}`;
  return configuration as unknown as Record<string, unknown>;
}

/** One YAML document below manifests/. */
export async function readManifest(packageRoot: string, path: string): Promise<unknown> {
  return parse(await readFile(join(packageRoot, 'manifests', path), 'utf8'));
}
