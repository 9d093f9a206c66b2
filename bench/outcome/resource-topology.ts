import { unionOf } from '../../model/cpu-set.ts';
import type { KubernetesObject } from '../../test/real/control-plane-stage.ts';
import { countedDevices, type KubeletNode } from './kubelets.ts';
import { xxhash64 } from './xxhash64.ts';

/**
 * NodeResourceTopology objects as resource-topology-exporter and NFD's updater create them from a kubelet's
 * PodResources API.
 */

export const RESOURCE_TOPOLOGIES = '/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies';

/** The CRD, without a schema for its content. */
export const RESOURCE_TOPOLOGY_DEFINITION: KubernetesObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: {
    name: 'noderesourcetopologies.topology.node.k8s.io',
    annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes/enhancements/pull/1870' },
  },
  spec: {
    group: 'topology.node.k8s.io',
    scope: 'Cluster',
    names: {
      kind: 'NodeResourceTopology',
      listKind: 'NodeResourceTopologyList',
      plural: 'noderesourcetopologies',
      singular: 'noderesourcetopology',
      shortNames: ['node-res-topo'],
    },
    versions: [
      {
        name: 'v1alpha2',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
};

/** Memory is never short here: each NUMA node has more than its VMs request. */
const MEMORY = '256Gi';
const METHOD = 'with-exclusive-resources';

/**
 * The node's resources by NUMA node: reserved CPUs are not allocatable, and assigned ones not available. A device
 * resource is only in the zones that have its devices.
 */
export function resourceTopologyOf({ name, settings, state, pods }: KubeletNode) {
  const { host, reserved, topologyManagerPolicy, topologyManagerScope } = settings;
  const assigned = unionOf([...state.assignments.values()].flatMap((containers) => [...containers.values()]));
  const devicesOf = (id: number) =>
    countedDevices(state).flatMap(({ resource, groups }) =>
      groups
        .filter(({ cells }) => cells === `${id}`)
        .map(({ total, free }) => ({
          name: resource,
          capacity: `${total}`,
          allocatable: `${total}`,
          available: `${free}`,
        })),
    );
  const zones = host.cells.map(({ id, cpus }) => {
    const allocatable = cpus.minus(reserved);
    return {
      name: `node-${id}`,
      type: 'Node',
      costs: host.cells.map((other) => ({ name: `node-${other.id}`, value: other.id === id ? 10 : 20 })),
      resources: [
        {
          name: 'cpu',
          capacity: `${cpus.size}`,
          allocatable: `${allocatable.size}`,
          available: `${allocatable.minus(assigned).size}`,
        },
        { name: 'memory', capacity: MEMORY, allocatable: MEMORY, available: MEMORY },
        ...devicesOf(id),
      ],
    };
  });
  return {
    apiVersion: 'topology.node.k8s.io/v1alpha2',
    kind: 'NodeResourceTopology',
    metadata: { name },
    attributes: [
      { name: 'topologyManagerPolicy', value: topologyManagerPolicy },
      { name: 'topologyManagerScope', value: topologyManagerScope },
      { name: 'nodeTopologyPodsFingerprint', value: fingerprint([...pods.values()].map(({ metadata }) => metadata)) },
      { name: 'nodeTopologyPodsFingerprintMethod', value: METHOD },
    ],
    zones,
  };
}

/** Fingerprint of the pods with exclusive CPUs, in any order. Source: k8stopologyawareschedwg/podfingerprint, v001. */
export function fingerprint(pods: readonly { readonly namespace?: string; readonly name: string }[]): string {
  const hashes = pods.map(({ namespace = '', name }) => xxhash64(Buffer.from(name), xxhash64(Buffer.from(namespace))));
  const sorted = BigUint64Array.from(hashes).sort();
  const bytes = Buffer.alloc(sorted.length * 8);
  sorted.forEach((hash, i) => {
    bytes.writeBigUInt64LE(hash, i * 8);
  });
  return `pfp0v001${xxhash64(bytes).toString(16).padStart(16, '0')}`;
}
