import type * as z from 'zod';
import type { KubeClient, RequestOptions } from '../../kube/client.ts';
import type { PodResources } from '../../kube/kubelet-api/gen/pod-resources.ts';
import { MAX_REFUSAL_MESSAGE, MAX_REFUSALS, type RefusedStart } from '../../kube/node-topology.ts';
import { pod as podSchema } from '../../kube/resources.ts';
import { ANNOTATED_THREADS_PER_CORE } from '../../model/alignment.ts';
import { BoundedMap } from '../../model/bounded-map.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { few } from '../../model/errors.ts';
import { type Host, isWholeCores } from '../../model/host.ts';
import { wantsWholeCores } from '../../model/launcher/annotation.ts';
import { vmiNameOf } from '../../model/launcher/recognize.ts';
import { PLACEMENT_ANNOTATION, physnetOfResource } from '../../model/names.ts';
import { parsePreferences } from '../../model/placement/preferences.ts';
import type { ListedContainer } from '../assignments/listed-containers.ts';
import { Listeners, type Services } from '../lifecycle/duty.ts';

/** Maximum number of cores in a message, and of characters for each core. */
const MAX_NAMED_NETWORKS = 8;
const MAX_CORE_CHARACTERS = 64;

interface Allocation {
  readonly host: Host;
  readonly resource: string;
  /** NUMA nodes of the network. Empty if unknown: the check then does not apply. */
  readonly cells: CpuSet;
  readonly cpus: CpuSet;
  /** Whether the webhook promised whole cores to the container. */
  readonly wholeCores: boolean;
  /** Whether the guest sees its NUMA nodes: then one of them must be the network's, otherwise all. */
  readonly spansCells: boolean;
}

type RefusedAllocation = NonNullable<ReturnType<typeof checkAllocation>>;

/** Like Nova's second claim on the compute host. A container in the shared pool runs on all NUMA nodes. */
export function checkAllocation({ host, resource, cells, cpus, wholeCores, spansCells }: Allocation) {
  if (cpus.isEmpty) return undefined;
  const touched = CpuSet.of(host.cells.filter((cell) => cell.cpus.intersects(cpus)).map(({ id }) => id));
  const near = spansCells ? touched.intersects(cells) : touched.isSubsetOf(cells);
  if (!cells.isEmpty && !near) {
    const elsewhere = `the kubelet gave CPUs ${cpus.brief} on NUMA node ${touched.brief}`;
    const message = `${deviceNetworkText(resource)} is on NUMA node ${cells.brief}, ${elsewhere}`;
    return { reason: 'NetworkElsewhere', message } as const;
  }
  if (!wholeCores || isWholeCores(host, cpus)) return undefined;
  const split = host.cores.filter((core) => core.intersects(cpus) && !core.isSubsetOf(cpus));
  const cores = few(split.map(String), MAX_NAMED_NETWORKS, MAX_CORE_CHARACTERS).join(' and ');
  const assigned = `the kubelet gave CPUs ${cpus.brief}, which split core ${cores}`;
  const message = `it needs whole cores, but ${assigned} (device of ${deviceNetworkText(resource)})`;
  return { reason: 'SplitCores', message } as const;
}

export function deviceNetworkText(resource: string): string {
  const physnet = physnetOfResource(resource);
  return physnet === undefined ? 'the tunnel' : `physnet ${physnet}`;
}

export function containerNames({ namespace, podName, container }: Omit<ListedContainer, 'cpus'>) {
  return { pod: `${namespace}/${podName}`, container };
}

/** The kubelet gives a plugin only device ids; PodResources lists them with the CPUs that it has assigned. */
export function holderOf(
  pods: readonly PodResources[],
  resource: string,
  deviceIds: readonly string[],
): ListedContainer | undefined {
  const ids = new Set(deviceIds);
  for (const { name: podName, namespace, containers } of pods) {
    for (const { name: container, devices, cpuIds } of containers) {
      const ofResource = devices.filter(({ resourceName }) => resourceName === resource);
      if (!ofResource.some((device) => device.deviceIds.some((id) => ids.has(id)))) continue;
      return { namespace, podName, container, cpus: CpuSet.of(cpuIds) };
    }
  }
  return undefined;
}

/** The action after a refused allocation: the container does not start, or only an Event reports it. */
export const ALLOCATION_CHECK_POLICIES = ['enforce', 'warn'] as const;

/** Seconds to wait for the API server to return a pod. A container waits only if the pod affects the result. */
const READ_TIMEOUT_SECONDS = 1;

export interface AllocationCheckerDeps extends Omit<Services, 'nodeName'> {
  readonly policy: (typeof ALLOCATION_CHECK_POLICIES)[number];
  readonly refusals: Pick<RefusedStarts, 'add'>;
}

export interface AllocationRequest {
  readonly holder: ListedContainer;
  readonly resource: string;
  readonly cells: CpuSet;
  readonly host: Host;
  readonly wholeCoresOnly: boolean;
}

type HolderPod = z.infer<typeof podSchema>;

/** @throws KubeError */
export async function readPodOfHolder(
  client: Pick<KubeClient, 'get'>,
  { namespace, podName }: ListedContainer,
  options: RequestOptions,
): Promise<HolderPod> {
  return podSchema.parse(await client.get(`/api/v1/namespaces/${namespace}/pods/${podName}`, options));
}

/** Reports a wrong allocation in an Event of the pod, which it reads only if the result depends on it. */
export class AllocationChecker {
  readonly #deps: AllocationCheckerDeps;

  constructor(deps: AllocationCheckerDeps) {
    this.#deps = deps;
  }

  /** Why the container must not start, or undefined. */
  async check(request: AllocationRequest, signal: AbortSignal): Promise<string | undefined> {
    const { metrics, policy, refusals } = this.#deps;
    const { refused, pod } = await this.#verdictOn(request, signal);
    const labels = { resource: metrics.resourceLabel(request.resource) };
    metrics.allocationChecks.inc({ ...labels, outcome: refused === undefined ? 'granted' : refused.reason });
    if (refused === undefined) return undefined;
    this.#announce(refused, request.holder, pod);
    if (policy !== 'enforce') return undefined;
    refusals.add(request.holder, pod?.metadata.uid, refused.message);
    return refused.message;
  }

  async #verdictOn(request: AllocationRequest, signal: AbortSignal) {
    const { client, log } = this.#deps;
    const { holder, resource, cells, host, wholeCoresOnly } = request;
    const strictest: Allocation = { host, resource, cells, cpus: holder.cpus, wholeCores: true, spansCells: false };
    if (checkAllocation(strictest) === undefined) return { refused: undefined, pod: undefined };
    const limits = { signal, timeout: READ_TIMEOUT_SECONDS };
    const pod = await readPodOfHolder(client, holder, limits).catch((err: unknown) => {
      const fields = { err, ...containerNames(holder) };
      log.warn(fields, 'reading the pod failed; applying the strictest check to its allocation');
      return undefined;
    });
    // With larger cores, the webhook promised whole cores only to pods that it padded.
    const { threadsPerCore } = host;
    const whole = threadsPerCore <= ANNOTATED_THREADS_PER_CORE || holder.cpus.size % threadsPerCore === 0;
    const promised = whole && pod !== undefined && wantsWholeCores(pod.metadata);
    const wholeCores = wholeCoresOnly || promised;
    const preferences = parsePreferences(pod?.metadata.annotations?.[PLACEMENT_ANNOTATION]);
    // A pod that cannot be read may have a guest that sees the NUMA nodes of its CPUs.
    const spansCells = pod === undefined || preferences.spansCells;
    return { refused: checkAllocation({ ...strictest, wholeCores, spansCells }), pod };
  }

  #announce({ reason, message }: RefusedAllocation, holder: ListedContainer, pod: HolderPod | undefined): void {
    const { events, policy, log } = this.#deps;
    const { namespace, podName: name, container } = holder;
    const uid = pod?.metadata.uid;
    const then = policy === 'enforce' ? 'it does not start' : 'it starts anyway';
    const event = { type: 'Warning', reason, message: `container ${container}: ${message}; ${then}` } as const;
    events.record({ apiVersion: 'v1', kind: 'Pod', name, namespace, uid }, event);
    const fields = { ...containerNames(holder), vmi: pod && vmiNameOf(pod), event: reason, message: event.message };
    log.warn(fields, 'allocation refused');
  }
}

/** Seconds after which a refusal that was not repeated expires: the kubelet retries at least every five minutes. */
const EXPIRES_SECONDS = 600;

/**
 * Containers that must not start, for the report. The extender reads refusals only from there: the author of an image can
 * forge a container's status. Owner: the allocation check. Age: since the last refusal of that container. End: ten minutes
 * without another one, or the oldest of too many.
 */
export class RefusedStarts extends Listeners {
  /** Monotonic seconds. */
  readonly #nowSeconds: () => number;
  readonly #refusals = new BoundedMap<string, { readonly refusal: RefusedStart; readonly at: number }>(MAX_REFUSALS);

  constructor(nowSeconds: () => number) {
    super();
    this.#nowSeconds = nowSeconds;
  }

  add({ namespace, podName, container }: ListedContainer, podUID: string | undefined, message: string): void {
    const key = `${namespace}/${podName}/${container}`;
    // Inserts at the end again: the oldest is removed first.
    this.#refusals.delete(key);
    const text = message.slice(0, MAX_REFUSAL_MESSAGE);
    const refusal = { ...(podUID !== undefined && { podUID }), namespace, podName, container, message: text };
    this.#refusals.set(key, { refusal, at: this.#nowSeconds() });
    this.#expire();
    this.notify();
  }

  current(): readonly RefusedStart[] {
    this.#expire();
    return [...this.#refusals.values()].map(({ refusal }) => refusal);
  }

  #expire(): void {
    for (const [key, { at }] of this.#refusals)
      if (this.#nowSeconds() - at > EXPIRES_SECONDS) this.#refusals.delete(key);
  }
}
