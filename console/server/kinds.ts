import { leasesPath } from '../../kube/cluster-view/leases.ts';
import { NODE_TOPOLOGIES_PATH } from '../../kube/cluster-view/node-topologies.ts';
import { NODES_PATH } from '../../kube/cluster-view/nodes.ts';
import { PODS_PATH } from '../../kube/cluster-view/pods.ts';
import { RESOURCE_SLICES_PATH } from '../../kube/cluster-view/resource-slices.ts';
import { instancesPath, machinesPath, migrationsPath } from '../../kube/cluster-view/vmis.ts';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { NAMESPACE } from '../../model/names.ts';

const required = (path: string, resource: string) => ({ path, resource, optional: false }) as const;
const optional = (path: string, resource: string) => ({ path, resource, optional: true }) as const;
const ofAll = (kind: string) => `${kind} of all namespaces`;
const DEPLOYMENTS_PATH = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`;

/** The kinds that the console lists and watches, and the data that is missing without permission to read one. */
export const KINDS = {
  nodetopologies: required(NODE_TOPOLOGIES_PATH, `nodetopologies.${NODE_TOPOLOGY_API.group}`),
  nodes: required(NODES_PATH, 'nodes'),
  pods: required(PODS_PATH, ofAll('pods')),
  leases: optional(leasesPath(NAMESPACE), `leases in ${NAMESPACE}`),
  virtualmachineinstances: optional(instancesPath(), ofAll('virtualmachineinstances')),
  virtualmachineinstancemigrations: optional(migrationsPath(), ofAll('virtualmachineinstancemigrations')),
  virtualmachines: optional(machinesPath(), ofAll('virtualmachines')),
  deployments: optional(DEPLOYMENTS_PATH, `deployments in ${NAMESPACE}`),
  resourceslices: optional(RESOURCE_SLICES_PATH, 'resourceslices'),
} as const;

export type Kind = keyof typeof KINDS;
export type OptionalKind = { [K in Kind]: (typeof KINDS)[K]['optional'] extends true ? K : never }[Kind];

export const isOptional = (kind: Kind): kind is OptionalKind => KINDS[kind].optional;
