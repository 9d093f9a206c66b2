import type * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { pod as podSchema } from '../../kube/resources.ts';
import { ANNOTATED_THREADS_PER_CORE } from '../../model/alignment.ts';
import type { CpuSet } from '../../model/cpu-set.ts';
import type { Host } from '../../model/host.ts';
import { wantsWholeCores } from '../../model/launcher/annotation.ts';
import { PLACEMENT_ANNOTATION } from '../../model/names.ts';
import { parsePreferences } from '../../model/placement/preferences.ts';
import type { Logger } from '../../runtime/log.ts';
import type { AgentMetrics } from '../telemetry/metrics.ts';
import { type Allocation, checkAllocation, type RefusedAllocation } from './allocation-check.ts';
import type { DeviceHolder } from './holder.ts';
import type { RefusedStarts } from './refused-starts.ts';

/** What becomes of a refused allocation: the container is kept from starting, or an Event says what is wrong. */
export const ALLOCATION_CHECK_POLICIES = ['enforce', 'warn'] as const;
export type AllocationCheckPolicy = (typeof ALLOCATION_CHECK_POLICIES)[number];

/** Seconds in which the API server must say what a pod is; a start waits for it only when it makes a difference. */
const ASK = 1;

export interface AllocationCheckerDeps {
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly policy: AllocationCheckPolicy;
  /** Where refusals are kept for the report. */
  readonly refusals: Pick<RefusedStarts, 'add'>;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

export interface AllocationRequest {
  readonly holder: DeviceHolder;
  readonly resource: string;
  readonly cells: CpuSet;
  readonly host: Host;
  /** Whether this node's kubelet gives whole cores only. */
  readonly wholeCoresOnly: boolean;
}

type Pod = z.infer<typeof podSchema>;

/** Checks allocations, and says in an Event of the pod what is wrong with one. */
export interface AllocationChecker {
  /** Why the container must not start, or undefined. */
  check(request: AllocationRequest, signal: AbortSignal): Promise<string | undefined>;
}

export function createAllocationChecker({
  client,
  events,
  policy,
  refusals,
  log,
  metrics,
}: AllocationCheckerDeps): AllocationChecker {
  const readPod = async ({ namespace, podName }: DeviceHolder, signal: AbortSignal): Promise<Pod | undefined> => {
    try {
      return podSchema.parse(
        await client.get(`/api/v1/namespaces/${namespace}/pods/${podName}`, { signal, timeout: ASK }),
      );
    } catch (err) {
      log.warn({ err, namespace, podName }, 'reading the pod failed; checking its allocation by the strictest rule');
      return undefined;
    }
  };

  const judge = async (request: AllocationRequest, signal: AbortSignal) => {
    const { holder, resource, cells, host, wholeCoresOnly } = request;
    const strictest: Allocation = { host, resource, cells, cpus: holder.cpus, wholeCores: true, spansCells: false };
    if (checkAllocation(strictest) === undefined) return { refused: undefined, pod: undefined };
    const pod = await readPod(holder, signal);
    // Of larger cores, whole ones were promised only to what was padded to them.
    const { threadsPerCore } = host;
    const whole = threadsPerCore <= ANNOTATED_THREADS_PER_CORE || holder.cpus.size % threadsPerCore === 0;
    const promised = whole && pod !== undefined && wantsWholeCores(pod.metadata);
    const wholeCores = wholeCoresOnly || promised;
    // A pod that cannot be read may be one whose guest sees the NUMA nodes that its CPUs span.
    const spansCells =
      pod === undefined || parsePreferences(pod.metadata.annotations?.[PLACEMENT_ANNOTATION]).spansCells;
    return { refused: checkAllocation({ ...strictest, wholeCores, spansCells }), pod };
  };

  const tell = ({ reason, message }: RefusedAllocation, holder: DeviceHolder, uid: string | undefined) => {
    const { namespace, podName: name, container } = holder;
    const then = policy === 'enforce' ? 'it is kept from starting' : 'it starts all the same';
    events.record(
      { apiVersion: 'v1', kind: 'Pod', name, namespace, uid },
      { type: 'Warning', reason, message: `container ${container}: ${message}; ${then}` },
    );
    log.warn({ namespace, pod: name, container, reason, message, policy }, 'allocation refused');
  };

  return {
    async check(request, signal) {
      const { refused, pod } = await judge(request, signal);
      const labels = { resource: metrics.resourceLabel(request.resource) };
      metrics.allocationChecks.inc({ ...labels, outcome: refused === undefined ? 'granted' : refused.reason });
      if (refused === undefined) return undefined;
      tell(refused, request.holder, pod?.metadata.uid);
      if (policy !== 'enforce') return undefined;
      refusals.add(request.holder, pod?.metadata.uid, refused.message);
      return refused.message;
    },
  };
}
