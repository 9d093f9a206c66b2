import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { DPU_HOST_LABEL, NAMESPACE, WEBHOOK } from '../../model/names.ts';
import packageJson from '../../package.json' with { type: 'json' };
import {
  apiVersionOf,
  BUILT_IN_TYPES,
  DAEMON_SETS,
  DEPLOYMENTS,
  ENDPOINT_SLICES,
  NAMESPACES,
  NODES,
  PODS,
  type ResourceType,
} from '../../sandbox/api-server/built-in-types.ts';
import { type LocalClient, unlessNotFound } from '../../sandbox/clients/local-client.ts';
import type { Container, KubeObject, KubePod, ObjectCondition } from '../../sandbox/objects.ts';

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
export async function createWorkloads(client: LocalClient, packageRoot: string, withPods: boolean): Promise<void> {
  await client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  for (const file of FILES) {
    const text = await readFile(join(packageRoot, 'manifests/base', file), 'utf8');
    for (const document of parseAllDocuments(text)) {
      const object = document.toJS() as KubeObject;
      const type = BUILT_IN_TYPES.find(
        ({ kind, ...rest }) => kind === object.kind && apiVersionOf(rest) === object.apiVersion,
      );
      if (type) await create(client, type, object, withPods);
    }
  }
}

export const podName = (workload: string, node = 'demo') => `${workload}-${node}`;

async function create(client: LocalClient, type: ResourceType, object: KubeObject, withPods: boolean): Promise<void> {
  object.metadata.namespace = NAMESPACE;
  if (type !== DEPLOYMENTS && type !== DAEMON_SETS) return void (await client.create(type, object));
  const workload = object as Workload;
  const { template } = workload.spec;
  for (const container of [...template.spec.containers, ...(template.spec.initContainers ?? [])]) tag(container);
  const { name } = workload.metadata;
  if (type === DEPLOYMENTS) Object.assign(workload.spec, { replicas: 1 });
  const owner = await client.create(type, workload);
  if (!withPods) return;
  const nodes = client.list(NODES).map(({ metadata }) => metadata);
  const isForDpuHosts = name.endsWith('-dpu-host');
  const podNodes =
    type === DEPLOYMENTS
      ? nodes.slice(0, 1)
      : nodes.filter(({ labels }) => (labels?.[DPU_HOST_LABEL] !== undefined) === isForDpuHosts);
  for (const node of podNodes) {
    const { apiVersion, kind, metadata } = owner;
    await client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: podName(name, type === DAEMON_SETS ? node.name : undefined),
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
export function followWorkloads(client: LocalClient, onFault: (error: unknown) => void): () => void {
  let line: Promise<unknown> = Promise.resolve();
  return client.follow(PODS, ({ object: { metadata } }) => {
    if (metadata.namespace === NAMESPACE) line = line.then(() => update(client)).catch(onFault);
  });
}

async function update(client: LocalClient): Promise<void> {
  const ready = client
    .list(PODS)
    .filter(({ metadata, status }) => metadata.namespace === NAMESPACE && isReady(status?.conditions))
    .map(({ metadata }) => metadata.labels?.['app.kubernetes.io/name']);
  for (const deployment of client.list(DEPLOYMENTS)) {
    const readyReplicas = ready.filter((name) => name === deployment.metadata.name).length;
    const change = (draft: KubeObject) => {
      const counts = { replicas: 1, updatedReplicas: 1, readyReplicas, availableReplicas: readyReplicas };
      draft['status'] = { observedGeneration: draft.metadata['generation'] ?? 1, ...counts };
    };
    await client.edit(DEPLOYMENTS, deployment, change, 'status').catch(unlessNotFound);
  }
  const slice: KubeObject = {
    apiVersion: apiVersionOf(ENDPOINT_SLICES),
    kind: ENDPOINT_SLICES.kind,
    metadata: { name: podName(WEBHOOK), namespace: NAMESPACE, labels: { 'kubernetes.io/service-name': WEBHOOK } },
    addressType: 'IPv4',
    ports: [{ name: 'https', port: 8443 }],
    endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: ready.includes(WEBHOOK) } }],
  };
  const { endpoints } = slice;
  if (!client.get(ENDPOINT_SLICES, NAMESPACE, podName(WEBHOOK))) await client.create(ENDPOINT_SLICES, slice);
  else await client.edit(ENDPOINT_SLICES, slice, (draft) => Object.assign(draft, { endpoints }));
}

function isReady(conditions: readonly ObjectCondition[] = []): boolean {
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}
