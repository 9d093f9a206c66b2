import type { KubeClient } from '../kube/client.ts';
import { NODE_TOPOLOGY_API, nodeTopology } from '../kube/node-topology.ts';
import { createReflector } from '../kube/reflector.ts';
import { networkAttachmentDefinition } from '../kube/resources.ts';
import { CpuSet } from '../model/cpu-set.ts';
import { type NetworkRef, refText } from '../model/networks/attachments.ts';
import type { NadShape } from '../model/networks/nad.ts';
import type { ReportedNetworks } from '../model/networks/resources.ts';
import type { Logger } from '../runtime/log.ts';

/** What the webhook knows of the cluster without asking: kept by watching. */
export interface ClusterView {
  run(signal: AbortSignal): Promise<void>;
  readonly synced: boolean;
  findNad(ref: NetworkRef): NadShape | undefined;
  /** Threads per core of each reporting node that takes whole cores only. */
  threadsPerCore(): readonly number[];
  /** The physnets and tunnels that nodes report with a known NUMA node. */
  reportedNetworks(): ReportedNetworks;
}

interface NodeFacts {
  readonly threadsPerCore: number;
  readonly fullPcpusOnly: boolean;
  readonly physnets: readonly string[];
  readonly tunnel: boolean;
}

export interface ClusterViewOptions {
  readonly client: KubeClient;
  readonly log: Logger;
  readonly now: () => number;
}

export function createClusterView({ client, log, now }: ClusterViewOptions): ClusterView {
  const nads = createReflector({
    client,
    path: '/apis/k8s.cni.cncf.io/v1/network-attachment-definitions',
    schema: networkAttachmentDefinition,
    project: ({ metadata, spec }): NadShape => ({
      metadata: { name: metadata.name, namespace: metadata.namespace, annotations: metadata.annotations },
      spec: { config: spec?.config },
    }),
    optional: true,
    log,
    now,
  });
  const nodes = createReflector({
    client,
    path: `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`,
    schema: nodeTopology,
    project: ({ status }): NodeFacts => ({
      threadsPerCore: Math.max(1, ...(status?.cores ?? []).map((core) => CpuSet.parse(core).size)),
      fullPcpusOnly: status?.cpuManager.options?.['full-pcpus-only'] === 'true',
      physnets: (status?.physnets ?? []).map(({ name }) => name),
      tunnel: status?.tunnel !== undefined,
    }),
    log,
    now,
  });
  return {
    async run(signal) {
      await Promise.all([nads.run(signal), nodes.run(signal)]);
    },
    get synced() {
      return nads.synced && nodes.synced;
    },
    findNad: (ref) => nads.items.get(refText(ref)),
    threadsPerCore: () =>
      [...nodes.items.values()].filter((node) => node.fullPcpusOnly).map((node) => node.threadsPerCore),
    reportedNetworks: () => ({
      physnets: new Set([...nodes.items.values()].flatMap((node) => node.physnets)),
      tunnel: [...nodes.items.values()].some((node) => node.tunnel),
    }),
  };
}
