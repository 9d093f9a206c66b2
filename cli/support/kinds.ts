import type * as z from 'zod';
import {
  explainedMigration,
  explainedNode,
  explainedPod,
  explainedVm,
  explainedVmi,
  occurrence,
} from '../../diagnosis/objects.ts';
import type { RequestOptions } from '../../kube/client.ts';
import { networkAttachmentDefinition } from '../../kube/resources.ts';

/** What several commands list in the same way, of all namespaces: the arguments of `readAll` after the client. */
type Kind<Item> = readonly [path: string, schema: z.ZodType<Item>, query?: RequestOptions['query']];

export const NODES = ['/api/v1/nodes', explainedNode] as const;
export const LAUNCHERS = ['/api/v1/pods', explainedPod, { labelSelector: 'kubevirt.io=virt-launcher' }] as const;
export const PENDING_PODS = ['/api/v1/pods', explainedPod, { fieldSelector: 'status.phase=Pending' }] as const;
export const MACHINES = ['/apis/kubevirt.io/v1/virtualmachines', explainedVm] as const;
export const INSTANCES = ['/apis/kubevirt.io/v1/virtualmachineinstances', explainedVmi] as const;
export const MIGRATIONS = ['/apis/kubevirt.io/v1/virtualmachineinstancemigrations', explainedMigration] as const;
export const NETWORKS = [
  '/apis/k8s.cni.cncf.io/v1/network-attachment-definitions',
  networkAttachmentDefinition,
] as const;

/** One list for each reason: a field selector does not support a list of values. */
export const eventsOf = (reason: string) =>
  ['/api/v1/events', occurrence, { fieldSelector: `reason=${reason}` }] as const;

/** The objects of a kind in one namespace. @param namespace undefined: all */
export function within<Item>([path, schema, query]: Kind<Item>, namespace: string | undefined): Kind<Item> {
  const scope = namespace === undefined ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  return [path.replace(/[^/]+$/, `${scope}$&`), schema, query];
}
