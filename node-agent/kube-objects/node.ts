import * as z from 'zod';
import { map, qualifiedName, uid, word } from '../../kube/bounds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { wholeOrNone } from '../../kube/node-facts.ts';
import { objectMeta } from '../../kube/resources.ts';

/** Resources that the Node counts; more than a kubelet has of device plugins. */
const MAX_RESOURCES = 1024;
const amounts = map(qualifiedName, word, MAX_RESOURCES).nullish();

const node = z.object({
  metadata: objectMeta.extend({ uid }),
  status: z
    .object({
      nodeInfo: z.object({ kubeletVersion: word }).nullish(),
      capacity: amounts,
      allocatable: amounts,
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
  /** Quantities by resource; unhealthy devices are capacity, but not allocatable. */
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
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
    maxPods: wholeOrNone(status?.capacity?.['pods'] ?? ''),
    capacity: status?.capacity ?? {},
    allocatable: status?.allocatable ?? {},
    labels: metadata.labels ?? {},
  };
}

/** Makes Kubernetes delete an object after the node. Deleting a node does not wait for the objects that it owns. */
export function ownedBy({ name, uid }: Pick<NodeIdentity, 'name' | 'uid'>) {
  return { apiVersion: 'v1', kind: 'Node', name, uid, controller: true, blockOwnerDeletion: false };
}
