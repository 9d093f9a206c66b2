import type * as z from 'zod';
import * as objects from '../../diagnosis/objects.ts';
import type { RequestOptions } from '../../kube/client.ts';
import { definitionsPath } from '../../kube/cluster-view/definitions.ts';
import { NODES_PATH } from '../../kube/cluster-view/nodes.ts';
import { PODS_PATH } from '../../kube/cluster-view/pods.ts';
import { instancesPath, machinesPath, migrationsPath } from '../../kube/cluster-view/vmis.ts';
import { networkAttachmentDefinition } from '../../kube/resources.ts';
import { NAMESPACE } from '../../model/names.ts';
import { deployment, kubevirt, systemPod, webhookConfiguration } from './objects.ts';

/** What several commands list in the same way, of all namespaces: the arguments of `readAll` after the client. */
type Kind<Item> = readonly [path: string, schema: z.ZodType<Item>, query?: RequestOptions['query']];

export const NODES = [NODES_PATH, objects.explainedNode] as const;
export const LAUNCHERS = [PODS_PATH, objects.explainedPod, { labelSelector: 'kubevirt.io=virt-launcher' }] as const;
export const PENDING_PODS = [PODS_PATH, objects.explainedPod, { fieldSelector: 'status.phase=Pending' }] as const;
export const MACHINES = [machinesPath(), objects.explainedVm] as const;
export const INSTANCES = [instancesPath(), objects.explainedVmi] as const;
export const MIGRATIONS = [migrationsPath(), objects.explainedMigration] as const;
export const NETWORKS = [definitionsPath(), networkAttachmentDefinition] as const;

export const KUBEVIRTS = ['/apis/kubevirt.io/v1/kubevirts', kubevirt] as const;

/** Of plumbline-system. */
export const DEPLOYMENTS = [`/apis/apps/v1/namespaces/${NAMESPACE}/deployments`, deployment] as const;
export const SYSTEM_PODS = [`/api/v1/namespaces/${NAMESPACE}/pods`, systemPod] as const;

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
export const MUTATING = [`${ADMISSION}/mutatingwebhookconfigurations`, webhookConfiguration] as const;
export const VALIDATING = [`${ADMISSION}/validatingwebhookconfigurations`, webhookConfiguration] as const;

export const podsOn = (node: string) =>
  [PODS_PATH, objects.explainedPod, { fieldSelector: `spec.nodeName=${node}` }] as const;

export const podsLabelled = (namespace: string, labelSelector: string) =>
  within([PODS_PATH, objects.explainedPod, { labelSelector }], namespace);

/** The launchers of one instance, by its uid: a migration has two. */
export const launchersOf = (namespace: string, uid: string) => podsLabelled(namespace, `kubevirt.io/created-by=${uid}`);

/** One VM or instance: the arguments of `readOne` after the client. */
export const machineNamed = (namespace: string, name: string) =>
  [`${machinesPath(namespace)}/${encodeURIComponent(name)}`, objects.explainedVm] as const;
export const instanceNamed = (namespace: string, name: string) =>
  [`${instancesPath(namespace)}/${encodeURIComponent(name)}`, objects.explainedVmi] as const;

/** One list for each reason: a field selector does not support a list of values. */
export const eventsOf = (reason: string) =>
  ['/api/v1/events', objects.occurrence, { fieldSelector: `reason=${reason}` }] as const;

/** The objects of a kind in one namespace. @param namespace undefined: all */
export function within<Item>([path, schema, query]: Kind<Item>, namespace: string | undefined): Kind<Item> {
  const scope = namespace === undefined ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
  return [path.replace(/[^/]+$/, `${scope}$&`), schema, query];
}
