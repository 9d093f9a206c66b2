import * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import { objectMeta } from '../../kube/resources.ts';

const node = z.object({
  metadata: objectMeta.extend({ uid: z.string() }),
  status: z
    .object({
      nodeInfo: z.object({ kubeletVersion: z.string() }).nullish(),
      capacity: z.looseObject({ pods: z.coerce.number().int().optional() }).nullish(),
    })
    .nullish(),
});

/** What the agent needs to know of its own Node object. */
export interface NodeIdentity {
  readonly name: string;
  readonly uid: string;
  readonly kubeletVersion: string | undefined;
  /** Pods that its kubelet takes. */
  readonly maxPods: number | undefined;
  /** Names of what it has or had, devices among it. */
  readonly resources: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Reads the agent's node.
 * @throws KubeError; a node that has not registered yet is its NotFound
 */
export async function readNode(client: KubeClient, name: string, signal: AbortSignal): Promise<NodeIdentity> {
  const { metadata, status } = node.parse(await client.get(`/api/v1/nodes/${name}`, { signal }));
  return {
    name,
    uid: metadata.uid,
    kubeletVersion: status?.nodeInfo?.kubeletVersion,
    maxPods: status?.capacity?.pods,
    resources: Object.keys(status?.capacity ?? {}),
    labels: metadata.labels ?? {},
  };
}

/** Makes an object go when the node goes. Nodes are deleted without waiting for what they own. */
export function ownedBy({ name, uid }: Pick<NodeIdentity, 'name' | 'uid'>) {
  return { apiVersion: 'v1', kind: 'Node', name, uid, controller: true, blockOwnerDeletion: false };
}
