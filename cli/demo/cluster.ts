import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { DPU_HOST_LABEL, NAMESPACE, SCHEDULER, WEBHOOK, WEBHOOK_REQUIRED } from '../../model/names.ts';
import packageJson from '../../package.json' with { type: 'json' };
import * as types from '../../sandbox/api-server/built-in-types.ts';
import { unlessNotFound } from '../../sandbox/api-server/errors.ts';
import type { Components } from '../../sandbox/api-server/schema-check.ts';
import type { CertificateAuthority } from '../../sandbox/certificates.ts';
import type { LocalClient } from '../../sandbox/clients/local-client.ts';
import {
  createSandbox,
  type EmulatedNode,
  type NodeDescription,
  type PodProcesses,
} from '../../sandbox/cluster/cluster.ts';
import type { Identity } from '../../sandbox/cluster/identities.ts';
import type { Container, KubeObject, KubePod, ObjectCondition } from '../../sandbox/objects.ts';
import type { MigrationSettings } from '../../sandbox/virt-controller/migrations.ts';
import { until } from './until.ts';

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
  ['mutating-webhook', types.MUTATING_WEBHOOKS],
  ['opt-in-webhook', types.MUTATING_WEBHOOKS],
  ['validating-webhook', types.VALIDATING_WEBHOOKS],
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
      await sandbox.client.create(types.SECRETS, {
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
      const subjects = () => sandbox.client.get(types.ROLE_BINDINGS, NAMESPACE, WEBHOOK_REQUIRED)?.['subjects'];
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
  // A YAML alias is one object in several places.
  for (const webhook of configuration.webhooks) webhook.clientConfig = { ...webhook.clientConfig, caBundle };
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

/** The workloads of the base and what the webhook switches itself on with, in the order of kustomize. */
const FILES = [
  ...['webhook/required.yaml', 'webhook/deployment.yaml', 'scheduler/deployment.yaml'],
  ...['node-agent/daemonset.yaml', 'node-agent/daemonset-dpu-host.yaml'],
];
const KUBE_SCHEDULER = 'v1.36.0';

type Workload = KubeObject & {
  spec: { template: { metadata: { labels: Record<string, string> }; spec: KubePod['spec'] } };
};

/** As after `kubectl apply`. @param withPods also the pods that controllers would create */
async function createWorkloads(client: LocalClient, packageRoot: string, withPods: boolean): Promise<void> {
  await client.create(types.NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  for (const file of FILES) {
    const text = await readFile(join(packageRoot, 'manifests/base', file), 'utf8');
    for (const document of parseAllDocuments(text)) {
      const object = document.toJS() as KubeObject;
      const type = types.BUILT_IN_TYPES.find(
        ({ kind, ...rest }) => kind === object.kind && types.apiVersionOf(rest) === object.apiVersion,
      );
      if (type) await create(client, type, object, withPods);
    }
  }
}

export function podName(workload: string, node = 'demo'): string {
  return `${workload}-${node}`;
}

async function create(
  client: LocalClient,
  type: types.ResourceType,
  object: KubeObject,
  withPods: boolean,
): Promise<void> {
  object.metadata.namespace = NAMESPACE;
  if (type !== types.DEPLOYMENTS && type !== types.DAEMON_SETS) return void (await client.create(type, object));
  const workload = object as Workload;
  const { template } = workload.spec;
  for (const container of [...template.spec.containers, ...(template.spec.initContainers ?? [])]) tag(container);
  const { name } = workload.metadata;
  if (type === types.DEPLOYMENTS) Object.assign(workload.spec, { replicas: 1 });
  const owner = await client.create(type, workload);
  if (!withPods) return;
  const nodes = client.list(types.NODES).map(({ metadata }) => metadata);
  const isForDpuHosts = name.endsWith('-dpu-host');
  const podNodes =
    type === types.DEPLOYMENTS
      ? nodes.slice(0, 1)
      : nodes.filter(({ labels }) => (labels?.[DPU_HOST_LABEL] !== undefined) === isForDpuHosts);
  for (const node of podNodes) {
    const { apiVersion, kind, metadata } = owner;
    await client.create(types.PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: podName(name, type === types.DAEMON_SETS ? node.name : undefined),
        namespace: NAMESPACE,
        labels: template.metadata.labels,
        ownerReferences: [{ apiVersion, kind, name, uid: metadata.uid ?? '', controller: true }],
      },
      spec: { ...template.spec, nodeName: node.name },
    });
  }
}

/** Kustomize adds the versions. */
function tag(container: Container): void {
  const version = container.image?.includes('/') ? KUBE_SCHEDULER : packageJson.version;
  container.image = `${container.image}:${version}`;
}

/** As the controllers do: status of Deployments, EndpointSlice of the webhook. Returns a function that ends this. */
function followWorkloads(client: LocalClient, onFault: (error: unknown) => void): () => void {
  let line: Promise<unknown> = Promise.resolve();
  return client.follow(types.PODS, ({ object: { metadata } }) => {
    if (metadata.namespace === NAMESPACE) line = line.then(() => update(client)).catch(onFault);
  });
}

async function update(client: LocalClient): Promise<void> {
  const ready = client
    .list(types.PODS)
    .filter(({ metadata, status }) => metadata.namespace === NAMESPACE && isReady(status?.conditions))
    .map(({ metadata }) => metadata.labels?.['app.kubernetes.io/name']);
  for (const deployment of client.list(types.DEPLOYMENTS)) {
    const readyReplicas = ready.filter((name) => name === deployment.metadata.name).length;
    const change = (draft: KubeObject) => {
      const counts = { replicas: 1, updatedReplicas: 1, readyReplicas, availableReplicas: readyReplicas };
      draft['status'] = { observedGeneration: draft.metadata['generation'] ?? 1, ...counts };
    };
    await client.edit(types.DEPLOYMENTS, deployment, change, 'status').catch(unlessNotFound);
  }
  const slice: KubeObject = {
    apiVersion: types.apiVersionOf(types.ENDPOINT_SLICES),
    kind: types.ENDPOINT_SLICES.kind,
    metadata: { name: podName(WEBHOOK), namespace: NAMESPACE, labels: { 'kubernetes.io/service-name': WEBHOOK } },
    addressType: 'IPv4',
    ports: [{ name: 'https', port: 8443 }],
    endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: ready.includes(WEBHOOK) } }],
  };
  const { endpoints } = slice;
  if (!client.get(types.ENDPOINT_SLICES, NAMESPACE, podName(WEBHOOK)))
    await client.create(types.ENDPOINT_SLICES, slice);
  else await client.edit(types.ENDPOINT_SLICES, slice, (draft) => Object.assign(draft, { endpoints }));
}

function isReady(conditions: readonly ObjectCondition[] = []): boolean {
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}
