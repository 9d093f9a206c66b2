import * as z from 'zod';
import { quote } from '../model/errors.ts';
import { faultOfError } from '../model/report/check.ts';
import { type ObjectMeta, objectMeta } from './resources.ts';

/**
 * NodeTopology: what a node is made of and who owns which of its CPUs, as that node's agent reports it. Cluster-scoped,
 * named after the node, status written by that agent alone. CPU sets are list strings and lists are atomic, so that a
 * report stays a few kilobytes and its managed fields a few lines.
 */
export const NODE_TOPOLOGY_API = {
  group: 'plumbline.dev',
  version: 'v1alpha1',
  kind: 'NodeTopology',
  plural: 'nodetopologies',
  apiVersion: 'plumbline.dev/v1alpha1',
} as const;

/**
 * The format of reports that this build writes and reads. A field more leaves it as it is; another meaning of a field, or another
 * value of an enumeration, raises it. Readers ignore a report of a format that they do not know (docs/reference/versions.md).
 */
export const REPORT_FORMAT = 1;

const cpuList = z.string();
const bytes = z.number().int().nonnegative();
const cpuGroup = z.object({ id: z.number().int().nonnegative(), cpus: cpuList });

/** Most VMs with a mask that one node reports, as the CRD's schema bounds it. */
export const MAX_PINNING = 1024;
/** Most characters of a message in the status. */
export const MAX_PINNING_MESSAGE = 1024;

export const pinningState = z.object({
  podUID: z.string(),
  namespace: z.string(),
  podName: z.string(),
  /**
   * pinned: every vCPU thread is on its CPUs, read back. refused: none was ever pinned, and the VM is not to be
   * resumed. unpinned: they were pinned and no longer can be.
   */
  state: z.enum(['pinned', 'unpinned', 'refused']),
  /** vCPU threads found. */
  vcpus: z.number().int().nonnegative(),
  reason: z.string().optional(),
  message: z.string().optional(),
});

/** Most containers that a report says were kept from starting, and characters of why, as the CRD bounds them. */
export const MAX_REFUSALS = 64;
export const MAX_REFUSAL_MESSAGE = 512;

/** A container that the agent kept from starting, since its CPUs are not those it was promised. */
export const refusedStart = z.object({
  /** Undefined where the pod could not be read. */
  podUID: z.string().optional(),
  namespace: z.string(),
  podName: z.string(),
  container: z.string(),
  message: z.string(),
});

export const nodeTopologyStatus = z.object({
  /** Absent: 1. */
  format: z
    .literal(REPORT_FORMAT, {
      error: ({ input }) =>
        `has format ${quote(String(input))}, and this version of Plumbline reads format ${REPORT_FORMAT}`,
    })
    .optional(),
  kubeletVersion: z.string().optional(),
  /** NUMA nodes and their online CPUs. */
  cells: z.array(cpuGroup),
  /** Sibling lists, one for each physical core: `0,8`. */
  cores: z.array(cpuList),
  sockets: z.array(cpuGroup).optional(),
  uncores: z.array(cpuGroup).optional(),
  /** CPUs the kubelet never gives to a container exclusively (reservedSystemCPUs, or what it derived). */
  reserved: cpuList,
  cpuManager: z.object({ policy: z.string(), options: z.record(z.string(), z.string()).optional() }),
  topologyManager: z
    .object({ policy: z.string(), scope: z.string().optional(), options: z.record(z.string(), z.string()).optional() })
    .optional(),
  memoryManager: z
    .object({
      policy: z.string(),
      /** Bytes of each NUMA node, those without CPUs included: all of them, those in huge pages, those reserved for the system. */
      cells: z
        .array(
          z.object({
            id: z.number().int().nonnegative(),
            memory: bytes,
            hugePages: z.record(z.string(), bytes).optional(),
            reserved: z.record(z.string(), bytes).optional(),
          }),
        )
        .optional(),
    })
    .optional(),
  /** By NUMA node: its distance to each node that has CPUs, ascending by id. */
  distances: z.record(z.string(), z.array(z.number().int().nonnegative())).optional(),
  /** CPUs that the kernel's scheduler leaves alone (isolcpus). */
  isolated: cpuList.optional(),
  /** Exclusive CPUs by container. podName and namespace are there when PodResources named the pod. */
  assignments: z.array(
    z.object({
      podUID: z.string(),
      namespace: z.string().optional(),
      podName: z.string().optional(),
      container: z.string(),
      cpus: cpuList,
    }),
  ),
  /** NUMA nodes of each physnet's uplinks, as a list string; '' where they are unknown. */
  physnets: z.array(z.object({ name: z.string(), cells: z.string() })).optional(),
  tunnel: z.object({ cells: z.string() }).optional(),
  /** Whether the agent serves near.plumbline.dev devices, by which pods prefer a network; absent: it does not. */
  hintsNetworks: z.boolean().optional(),
  /** CPUs of OVS's poll mode driver threads. */
  pmdCPUs: cpuList.optional(),
  /** Whether the agent sets CPU masks; absent: it does. Without it (--vm-pinning off) nothing ends the pause of a VM with one. */
  pinsVMs: z.boolean().optional(),
  /** VMs with a CPU mask, by launcher pod: whether their vCPU threads are where the mask says. */
  pinning: z.array(pinningState).optional(),
  refusals: z.array(refusedStart).optional(),
  conditions: z
    .array(
      z.object({
        type: z.string(),
        status: z.enum(['True', 'False', 'Unknown']),
        reason: z.string(),
        message: z.string(),
        lastTransitionTime: z.string(),
      }),
    )
    .optional(),
});

/** A status that cannot be read, of another version maybe, is left out with the reason: the object says who wrote it. */
export const nodeTopology = z
  .object({
    apiVersion: z.literal(NODE_TOPOLOGY_API.apiVersion),
    kind: z.literal(NODE_TOPOLOGY_API.kind),
    metadata: objectMeta,
    status: z.unknown().optional(),
  })
  .transform(({ status, ...object }): NodeTopology => {
    if (status == null) return object;
    const read = nodeTopologyStatus.safeParse(status);
    return read.success ? { ...object, status: read.data } : { ...object, unread: faultOfError(read.error).message };
  });

export type NodeTopologyStatus = z.infer<typeof nodeTopologyStatus>;
export type RefusedStart = z.infer<typeof refusedStart>;
export type PinningState = z.infer<typeof pinningState>;
export interface NodeTopology {
  readonly apiVersion: typeof NODE_TOPOLOGY_API.apiVersion;
  readonly kind: typeof NODE_TOPOLOGY_API.kind;
  readonly metadata: ObjectMeta;
  readonly status?: NodeTopologyStatus | undefined;
  /** Why there is a status that cannot be read. */
  readonly unread?: string;
}
