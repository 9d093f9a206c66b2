import * as z from 'zod';
import { uid, word } from '../../kube/bounds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { objectMeta } from '../../kube/resources.ts';

const node = z.object({
  metadata: objectMeta.extend({ uid }),
  status: z
    .object({
      nodeInfo: z.object({ kubeletVersion: word }).nullish(),
      capacity: z.object({ pods: z.coerce.number().int().optional() }).nullish(),
    })
    .nullish(),
});

/** The part of its own Node object that the agent needs. */
export interface NodeIdentity {
  readonly name: string;
  readonly uid: string;
  readonly kubeletVersion: string | undefined;
  /** Maximum pods of the kubelet. */
  readonly maxPods: number | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Reads the agent's node.
 *
 * @throws KubeError; NotFound if the node has not registered yet
 */
export async function readNode(client: KubeClient, name: string, signal: AbortSignal): Promise<NodeIdentity> {
  const { metadata, status } = node.parse(await client.get(`/api/v1/nodes/${name}`, { signal }));
  return {
    name,
    uid: metadata.uid,
    kubeletVersion: status?.nodeInfo?.kubeletVersion,
    maxPods: status?.capacity?.pods,
    labels: metadata.labels ?? {},
  };
}

/** Makes Kubernetes delete an object after the node. Deleting a node does not wait for the objects that it owns. */
export function ownedBy({ name, uid }: Pick<NodeIdentity, 'name' | 'uid'>) {
  return { apiVersion: 'v1', kind: 'Node', name, uid, controller: true, blockOwnerDeletion: false };
}
