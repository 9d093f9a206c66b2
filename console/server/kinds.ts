import { leasesPath } from '../../kube/cluster-view/leases.ts';
import { RESOURCE_SLICES_PATH } from '../../kube/cluster-view/resource-slices.ts';
import { NODE_TOPOLOGY_API } from '../../kube/node-topology.ts';
import { NAMESPACE } from '../../model/names.ts';

/** The kinds that the console lists and watches, and the data that is missing without permission to read one. */
export const KINDS = {
  nodetopologies: {
    path: `/apis/${NODE_TOPOLOGY_API.apiVersion}/${NODE_TOPOLOGY_API.plural}`,
    resource: `nodetopologies.${NODE_TOPOLOGY_API.group}`,
    optional: false,
  },
  nodes: { path: '/api/v1/nodes', resource: 'nodes', optional: false },
  pods: { path: '/api/v1/pods', resource: 'pods of all namespaces', optional: false },
  leases: {
    path: leasesPath(NAMESPACE),
    resource: `leases in ${NAMESPACE}`,
    optional: true,
  },
  virtualmachineinstances: {
    path: '/apis/kubevirt.io/v1/virtualmachineinstances',
    resource: 'virtualmachineinstances of all namespaces',
    optional: true,
  },
  virtualmachineinstancemigrations: {
    path: '/apis/kubevirt.io/v1/virtualmachineinstancemigrations',
    resource: 'virtualmachineinstancemigrations of all namespaces',
    optional: true,
  },
  virtualmachines: {
    path: '/apis/kubevirt.io/v1/virtualmachines',
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
