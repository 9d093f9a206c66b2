import { leasesPath } from '../../kube/cluster-view/leases.ts';
import { NODE_TOPOLOGIES_PATH } from '../../kube/cluster-view/node-topologies.ts';
import { NODES_PATH } from '../../kube/cluster-view/nodes.ts';
import { PODS_PATH } from '../../kube/cluster-view/pods.ts';
import { RESOURCE_SLICES_PATH } from '../../kube/cluster-view/resource-slices.ts';
import { instancesPath, machinesPath, migrationsPath } from '../../kube/cluster-view/vmis.ts';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { NAMESPACE } from '../../model/names.ts';

/** The kinds that the console lists and watches, and the data that is missing without permission to read one. */
export const KINDS = {
  nodetopologies: {
    path: NODE_TOPOLOGIES_PATH,
    resource: `nodetopologies.${NODE_TOPOLOGY_API.group}`,
    optional: false,
  },
  nodes: { path: NODES_PATH, resource: 'nodes', optional: false },
  pods: { path: PODS_PATH, resource: 'pods of all namespaces', optional: false },
  leases: {
    path: leasesPath(NAMESPACE),
    resource: `leases in ${NAMESPACE}`,
    optional: true,
  },
  virtualmachineinstances: {
    path: instancesPath(),
    resource: 'virtualmachineinstances of all namespaces',
    optional: true,
  },
  virtualmachineinstancemigrations: {
    path: migrationsPath(),
    resource: 'virtualmachineinstancemigrations of all namespaces',
    optional: true,
  },
  virtualmachines: {
    path: machinesPath(),
    resource: 'virtualmachines of all namespaces',
    optional: true,
  },
  deployments: {
    path: `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`,
    resource: `deployments in ${NAMESPACE}`,
    optional: true,
  },
  resourceslices: { path: RESOURCE_SLICES_PATH, resource: 'resourceslices', optional: true },
} as const;

export type Kind = keyof typeof KINDS;
export type OptionalKind = { [K in Kind]: (typeof KINDS)[K]['optional'] extends true ? K : never }[Kind];

export const isOptional = (kind: Kind): kind is OptionalKind => KINDS[kind].optional;
