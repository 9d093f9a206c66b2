import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { NAMESPACE, SCHEDULER, WEBHOOK, WEBHOOK_REQUIRED } from '../../model/names.ts';
import {
  MUTATING_WEBHOOKS,
  ROLE_BINDINGS,
  SECRETS,
  VALIDATING_WEBHOOKS,
} from '../../sandbox/api-server/built-in-types.ts';
import type { Components } from '../../sandbox/api-server/schema-check.ts';
import type { CertificateAuthority } from '../../sandbox/certificates.ts';
import type { LocalClient } from '../../sandbox/clients/local-client.ts';
import { createSandbox } from '../../sandbox/cluster/cluster.ts';
import type { EmulatedNode, NodeDescription, PodProcesses } from '../../sandbox/cluster/emulated-node.ts';
import type { Identity } from '../../sandbox/cluster/identities.ts';
import type { KubeObject } from '../../sandbox/objects.ts';
import type { MigrationSettings } from '../../sandbox/virt-controller/migrations.ts';
import { until } from './until.ts';
import { createWorkloads, followWorkloads, podName } from './workloads.ts';

export interface DemoCluster {
  readonly client: LocalClient;
  readonly authority: CertificateAuthority;
  /** Name of the pod whose kube-scheduler calls the extender. Default: this machine's host name. */
  schedulerPod?(): Promise<string>;
  /** @throws RangeError if there is no node with that name */
  node(name: string): EmulatedNode;
  start(): Promise<void>;
  prepare(): Promise<void>;
  /** Stores a certificate in the Secret that cert-manager would write, with its name in the manifests. */
  keepCertificate?(service: string, pair: { readonly cert: string; readonly key: string }): Promise<void>;
  kubeconfig(identity: Identity): Promise<string>;
  wire(ports: { readonly webhook: number; readonly extender: number }): Promise<void>;
  called?(): Promise<void>;
  stop(): Promise<void>;
}

export interface ClusterOptions {
  readonly directory: string;
  readonly nodes: readonly NodeDescription[];
  readonly packageRoot: string;
  /** Schemas of the API server's types. Without them the embedded one accepts any field. */
  readonly components?: Components;
  readonly processes?: PodProcesses;
  readonly migrations?: Partial<MigrationSettings>;
  readonly onFault: (error: unknown) => void;
}

const CONFIGURATIONS = [
  ['mutating-webhook', MUTATING_WEBHOOKS],
  ['opt-in-webhook', MUTATING_WEBHOOKS],
  ['validating-webhook', VALIDATING_WEBHOOKS],
] as const;

export function createEmbeddedCluster({ packageRoot, ...options }: ClusterOptions): DemoCluster {
  const sandbox = createSandbox(options);
  let endFollowing = () => {};
  return {
    client: sandbox.client,
    authority: sandbox.authority,
    schedulerPod: async () => podName(SCHEDULER),
    node: (name) => sandbox.node(name),
    start: () => sandbox.start(),
    // The embedded API server serves Plumbline's kinds from the start and authorizes every request.
    async prepare() {
      await createWorkloads(sandbox.client, packageRoot, options.processes !== undefined);
      endFollowing = followWorkloads(sandbox.client, options.onFault);
    },
    async keepCertificate(service, { cert, key }) {
      const base64 = (text: string) => Buffer.from(text).toString('base64');
      await sandbox.client.create(SECRETS, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `${service}-tls`, namespace: NAMESPACE },
        type: 'kubernetes.io/tls',
        // Without the CA, which is created for this cluster and lasts only as long as the cluster.
        data: { 'tls.crt': base64(cert), 'tls.key': base64(key) },
      });
    },
    kubeconfig: (identity) => sandbox.kubeconfig(identity),
    async wire({ webhook, extender }) {
      sandbox.route(NAMESPACE, WEBHOOK, { host: '127.0.0.1', port: webhook });
      const caBundle = Buffer.from(sandbox.authority.cert).toString('base64');
      for (const [file, type] of CONFIGURATIONS) {
        await sandbox.client.create(type, await webhookConfiguration(packageRoot, file, caBundle));
      }
      await sandbox.addScheduler(await sidecarConfiguration(packageRoot, extender), podName(SCHEDULER));
    },
    async called() {
      const subjects = () => sandbox.client.get(ROLE_BINDINGS, NAMESPACE, WEBHOOK_REQUIRED)?.['subjects'];
      await until('the webhook to switch itself on', 10, subjects);
    },
    async stop() {
      endFollowing();
      await sandbox.stop();
    },
  };
}

type WebhookConfiguration = KubeObject & { webhooks: { clientConfig: { caBundle?: string } }[] };

async function webhookConfiguration(packageRoot: string, name: string, caBundle: string) {
  const configuration = (await readManifest(packageRoot, `base/webhook/${name}.yaml`)) as WebhookConfiguration;
  for (const webhook of configuration.webhooks) {
    // A YAML alias is one object in several places.
    webhook.clientConfig = { ...webhook.clientConfig, caBundle };
  }
  return configuration;
}

export async function sidecarConfiguration(packageRoot: string, port: number): Promise<Record<string, unknown>> {
  const configuration = (await readManifest(packageRoot, 'base/scheduler/config.yaml')) as {
    extenders: { urlPrefix: string }[];
  };
  for (const extender of configuration.extenders) extender.urlPrefix = `http://127.0.0.1:${port}`;
  return configuration as unknown as Record<string, unknown>;
}

async function readManifest(packageRoot: string, path: string): Promise<unknown> {
  return parse(await readFile(join(packageRoot, 'manifests', path), 'utf8'));
}
