import { unionOf } from '../../model/cpu-set.ts';
import type { KubernetesObject } from '../../test/real/control-plane-stage.ts';
import { countedDevices, type KubeletNode } from './kubelets.ts';

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

/**
 * XXH64, the hash in pod fingerprints of NodeResourceTopology objects.
 *
 * Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
 */
const [P1, P2, P3, P4, P5] = [
  11400714785074694791n,
  14029467366897019727n,
  1609587929392839161n,
  9650029242287828579n,
  2870177450012600261n,
] as const;

const u64 = (value: bigint) => BigInt.asUintN(64, value);
const rotate = (value: bigint, bits: bigint) => u64((value << bits) | (value >> (64n - bits)));
const round = (sum: bigint, lane: bigint) => u64(rotate(u64(sum + lane * P2), 31n) * P1);
const merge = (sum: bigint, lane: bigint) => u64((sum ^ round(0n, lane)) * P1 + P4);

function xxhash64(bytes: Buffer, seed = 0n): bigint {
  let at = 0;
  let sum: bigint;
  if (bytes.length >= 32) {
    let lanes = [u64(seed + P1 + P2), u64(seed + P2), seed, u64(seed - P1)];
    for (; at + 32 <= bytes.length; at += 32) {
      lanes = lanes.map((lane, i) => round(lane, bytes.readBigUInt64LE(at + i * 8)));
    }
    sum = u64(lanes.reduce((all, lane, i) => all + rotate(lane, [1n, 7n, 12n, 18n][i]!), 0n));
    for (const lane of lanes) sum = merge(sum, lane);
  } else sum = u64(seed + P5);
  sum = u64(sum + BigInt(bytes.length));
  for (; at + 8 <= bytes.length; at += 8) {
    sum = u64(rotate(sum ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * P1 + P4);
  }
  if (at + 4 <= bytes.length) {
    sum = u64(rotate(sum ^ u64(BigInt(bytes.readUInt32LE(at)) * P1), 23n) * P2 + P3);
    at += 4;
  }
  for (; at < bytes.length; at++) sum = u64(rotate(sum ^ u64(BigInt(bytes.readUInt8(at)) * P5), 11n) * P1);
  sum = u64((sum ^ (sum >> 33n)) * P2);
  sum = u64((sum ^ (sum >> 29n)) * P3);
  return sum ^ (sum >> 32n);
}
