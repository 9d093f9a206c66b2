import * as z from 'zod';
import { quote } from '../model/errors.ts';
import { faultOfError } from '../model/report/check.ts';
import { list, map, name, text, uid, word } from './bounds.ts';
import { type ObjectMeta, objectMeta } from './resources.ts';

/**
 * The hardware of a node and the owners of its CPUs, written by its agent. CPU sets are CPU lists such as `0-3,8`;
 * lists are atomic, so that a report stays small.
 */
export const NODE_TOPOLOGY_API = {
  group: 'plumbline.dev',
  version: 'v1alpha1',
  kind: 'NodeTopology',
  plural: 'nodetopologies',
  apiVersion: 'plumbline.dev/v1alpha1',
} as const;

/** A new meaning of a field or enumeration value changes it; a new field does not (docs/reference/versions.md). */
const REPORT_FORMAT = 1;
const otherFormat = (format: unknown) =>
  `has format ${quote(String(format))}, and this version of Plumbline reads format ${REPORT_FORMAT}`;

/** The maxima of the definition in manifests/base/crd. */
const cpuList = text(4096);
const cellList = text(256);
const options = map(word, word, 32).optional();
const count = z.number().int().nonnegative();
const bytes = count;
const cpuGroup = z.object({ id: count, cpus: cpuList });

/** Largest numbers of resources in a report, and of groups of one, as in the CRD. */
export const MAX_DEVICE_RESOURCES = 64;
export const MAX_DEVICE_GROUPS = 32;

const deviceResource = z.object({
  resource: name,
  /** The healthy devices, by their NUMA nodes: a list such as `0-1`; absent for devices without topology. */
  groups: list(z.object({ cells: cellList.optional(), total: count, free: count }), MAX_DEVICE_GROUPS),
  /** Devices that the Node's capacity counts and that are not healthy. Absent means none. */
  unhealthy: count.optional(),
  /** Whether DRA serves the resource, so that it gives the kubelet no hint. */
  dra: z.boolean().optional(),
});

export const MAX_PINNING_STATES = 1024;
export const MAX_PINNING_MESSAGE_CHARACTERS = 1024;

export const pinningState = z.object({
  podUID: uid,
  namespace: word,
  podName: name,
  /**
   * pinned: every vCPU thread runs on its CPUs, as read back from the kernel. refused: the threads were never pinned,
   * and the VM must not resume. unpinned: the threads were pinned and can no longer be.
   */
  state: z.enum(['pinned', 'unpinned', 'refused']),
  vcpus: count,
  reason: word.optional(),
  message: text(MAX_PINNING_MESSAGE_CHARACTERS).optional(),
});

/** Largest number of refused containers in a report, and characters of each message, as in the CRD. */
export const MAX_REFUSALS = 64;
export const MAX_REFUSAL_MESSAGE = 512;

/** A container that the agent did not let start, because its CPUs differ from its reservation. */
export const refusedStart = z.object({
  podUID: uid.optional(),
  namespace: word,
  podName: name,
  container: word,
  message: text(MAX_REFUSAL_MESSAGE),
});

export const MAX_DISTURBED_VMS = 256;

/** A VM that lost more than 1 % of the time of its dedicated CPUs during ten minutes. */
export const disturbedPod = z.object({ podUID: uid, namespace: word, podName: name, percent: count });

export const MAX_CPU_CLAIMS = 1024;

export const MAX_PHYSNETS = 256;

/** NUMA nodes of a physnet's uplinks, as a list such as `0-1`; '' if unknown. */
export const physnet = z.object({ name, cells: cellList });

export const nodeTopologyStatus = z.object({
  /** Absent means 1. */
  format: z.literal(REPORT_FORMAT, { error: ({ input }) => otherFormat(input) }).optional(),
  kubeletVersion: word.optional(),
  /** NUMA nodes and their online CPUs. */
  cells: list(cpuGroup, 64),
  /** CPU lists of the kubelet's cores: `0,8`. */
  cores: list(text(256), 2048),
  sockets: list(cpuGroup, 64).optional(),
  uncores: list(cpuGroup, 1024).optional(),
  /** The kubelet's numbers of CPUs and sockets, if they are not those of the report's lists. */
  counts: z.object({ cpus: count, sockets: count }).optional(),
  /** CPUs that the kubelet never assigns exclusively (reservedSystemCPUs, or its derived value). */
  reserved: cpuList,
  cpuManager: z.object({ policy: word, options }),
  topologyManager: z.object({ policy: word, scope: word.optional(), options }).optional(),
  memoryManager: z
    .object({
      policy: word,
      /** Bytes of each NUMA node, also of those without CPUs: total, in huge pages, reserved for the system. */
      cells: list(
        z.object({
          id: count,
          memory: bytes,
          hugePages: map(word, bytes, 32).optional(),
          /** Bytes in huge pages that are free by the kernel now; absent: not known. */
          freePages: map(word, bytes, 32).optional(),
          reserved: map(word, bytes, 32).optional(),
          /**
           * What the static memory manager has left: the number of blocks that include the NUMA node, the NUMA nodes
           * of its group (a list), and free bytes by type. Absent where it is not known.
           */
          state: z.object({ blocks: count, group: cellList, free: map(word, bytes, 32) }).optional(),
        }),
        64,
      ).optional(),
    })
    .optional(),
  /** Devices of device plugins, ascending by resource. Absent: not known. */
  devices: list(deviceResource, MAX_DEVICE_RESOURCES).optional(),
  /** Feature gates of the kubelet's configuration that change admission. Absent: not known. */
  featureGates: map(word, z.boolean(), 32).optional(),
  /** For people: the printer columns of `kubectl get nodetopologies`. */
  summary: z.object({ cpus: count, free: count, networks: cellList, reported: word }).optional(),
  /** For each NUMA node, its distances to the nodes that have CPUs, ascending by id. */
  distances: map(word, list(count, 64), 64).optional(),
  /** CPUs that the kernel's scheduler does not balance (isolcpus). */
  isolated: cpuList.optional(),
  offline: cpuList.optional(),
  /** Exclusive CPUs of each container. podName and namespace are set if PodResources named the pod. */
  assignments: list(
    z.object({ podUID: uid, namespace: word.optional(), podName: name.optional(), container: word, cpus: cpuList }),
    2048,
  ),
  /** CPUs of ResourceClaims, which dra-driver-cpu gives; namespace and name are set if PodResources named the claim. */
  claims: list(
    z.object({ uid, namespace: word.optional(), name: name.optional(), cpus: cpuList }),
    MAX_CPU_CLAIMS,
  ).optional(),
  physnets: list(physnet, MAX_PHYSNETS).optional(),
  tunnel: z.object({ cells: cellList }).optional(),
  /** CPUs of OVS's poll mode driver threads. */
  pmdCPUs: cpuList.optional(),
  /** Whether the agent sets CPU masks; absent: yes. Without (--vm-pinning off), a VM with a mask stays paused. */
  pinsVMs: z.boolean().optional(),
  /** VMs with a CPU mask, by launcher pod, and whether their vCPU threads run on the CPUs of the mask. */
  pinning: list(pinningState, MAX_PINNING_STATES).optional(),
  refusals: list(refusedStart, MAX_REFUSALS).optional(),
  interference: list(disturbedPod, MAX_DISTURBED_VMS).optional(),
  conditions: list(
    z.object({
      type: text(316),
      status: z.enum(['True', 'False', 'Unknown']),
      reason: text(1024),
      message: text(4096),
      lastTransitionTime: word,
    }),
    32,
  ).optional(),
});

interface Unparsed extends Pick<NodeTopology, 'apiVersion' | 'kind' | 'metadata'> {
  readonly status?: unknown;
}

/** A status that cannot be parsed becomes undefined with a reason. */
function withStatus({ status, ...object }: Unparsed): NodeTopology {
  if (status == null) return object;
  const read = nodeTopologyStatus.safeParse(status);
  return read.success ? { ...object, status: read.data } : { ...object, unread: faultOfError(read.error).message };
}

export const nodeTopology = z
  .object({
    apiVersion: z.literal(NODE_TOPOLOGY_API.apiVersion),
    kind: z.literal(NODE_TOPOLOGY_API.kind),
    metadata: objectMeta,
    status: z.unknown().optional(),
  })
  .transform(withStatus);

export type NodeTopologyStatus = z.infer<typeof nodeTopologyStatus>;
export type RefusedStart = z.infer<typeof refusedStart>;
export type DisturbedPod = z.infer<typeof disturbedPod>;
export type PinningState = z.infer<typeof pinningState>;
export interface NodeTopology {
  readonly apiVersion: typeof NODE_TOPOLOGY_API.apiVersion;
  readonly kind: typeof NODE_TOPOLOGY_API.kind;
  readonly metadata: ObjectMeta;
  readonly status?: NodeTopologyStatus | undefined;
  readonly unread?: string;
}

/** Every owner of CPUs in a report. A claim owns its CPUs as a pod of its name with one container does. */
export function cpuOwners({ assignments, claims = [] }: Pick<NodeTopologyStatus, 'assignments' | 'claims'>) {
  const ofClaims = claims.map(({ uid: podUID, namespace, name: podName, cpus }) => {
    return { podUID, namespace, podName, container: 'claim', cpus };
  });
  return [...assignments, ...ofClaims];
}
