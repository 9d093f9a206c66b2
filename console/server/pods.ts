import * as z from 'zod';
import { objectMeta, pod as podSchema } from '../../kube/resources.ts';
import { paddingOf } from '../../model/admission/decided.ts';
import { lastingCpus, reducedRequest } from '../../model/kubelet/pod-request.ts';
import { MANAGED_RESOURCES } from '../../model/names.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { isExclusive, placementNeedsOf } from '../../model/placement/pod-needs.ts';
import { bypassesOf } from '../../model/vm-state/bypasses.ts';
import type { Cause, StatePod } from '../../model/vm-state/facts.ts';
import { REJECTIONS } from '../../model/vm-state/rejected.ts';
import { type VmState, vmState } from '../../model/vm-state/state.ts';

/** A pod with how far it is. Of its containers' statuses nothing is read: their prose can be a tenant's. */
export const watchedPod = podSchema.extend({
  metadata: objectMeta.extend({ creationTimestamp: z.string().optional() }),
  spec: podSchema.shape.spec.extend({ schedulingGates: z.array(z.object({ name: z.string() })).nullish() }),
  status: z
    .object({
      phase: z.string().optional(),
      qosClass: z.string().optional(),
      reason: z.string().optional(),
      message: z.string().optional(),
      nominatedNodeName: z.string().optional(),
      startTime: z.string().nullish(),
      conditions: z.array(z.object({ type: z.string(), status: z.string(), message: z.string().optional() })).nullish(),
    })
    .nullish(),
});
export type WatchedPod = z.infer<typeof watchedPod>;

/** A pod that the page shows: one with CPUs of its own or a CPU mask, or one that the scheduler found no node for. */
export interface ShownPod {
  readonly uid: string;
  /** The uid by which the node's report knows it; of a static pod it is not its mirror's. */
  readonly kubeletUid: string;
  readonly namespace: string;
  readonly name: string;
  /** The VM whose launcher it is. */
  readonly vm: string | undefined;
  readonly node: string | undefined;
  readonly nominated: string | undefined;
  /** No container has run yet, and it is not being deleted. */
  readonly pending: boolean;
  /** The kubelet's reason, where it was refused at admission. */
  readonly rejected: string | undefined;
  /** RFC 3339. */
  readonly since: string | undefined;
  /** Why kube-scheduler found no node, in its own words; '' where it gave none, undefined before its first attempt. */
  readonly unscheduled: string | undefined;
  /** CPUs that the webhook added to complete whole cores. */
  readonly padding: number;
  readonly cpus: number;
  readonly wholeCores: boolean;
  readonly networks: readonly (readonly [network: string, affinity: string])[];
  /** Of one that waits or was rejected: how it is, in the words of `plumbline explain`; undefined for one that runs. */
  readonly state: ShownState | undefined;
  /** To predict its CPUs with while it is on its way to a node, and to judge where it runs. */
  readonly needs: PlacementNeeds;
  /** Since when it runs, RFC 3339; undefined where it does not. */
  readonly running: string | undefined;
  /** Of one that runs: what shows that a part of Plumbline never saw it. */
  readonly bypasses: readonly Cause[];
}

export type ShownState = Pick<VmState, 'verdict' | 'reason' | 'text'>;

const ENDED = new Set(['Succeeded', 'Failed']);
/** Characters of the scheduler's message: it names reasons, not nodes. */
const LONGEST_MESSAGE = 1024;

/** Undefined for a pod that the page does not show: nearly all pods of a cluster, of which nothing is kept. */
export function shownPod(pod: WatchedPod): ShownPod | undefined {
  const { metadata, spec } = pod;
  const { phase = 'Pending', nominatedNodeName } = pod.status ?? {};
  const rejected = rejectionOf(pod);
  const ended = ENDED.has(phase) && rejected === undefined;
  if (metadata.uid === undefined || ended) return undefined;
  const needs = readNeeds(pod);
  if (needs === undefined) return undefined;
  const node = spec.nodeName || undefined;
  const unscheduled = node === undefined ? schedulerMessage(pod) : undefined;
  const vm = vmOf(pod);
  const owns = isExclusive(needs) || needs.mask !== undefined;
  if (!owns && (unscheduled === undefined || (vm === undefined && !isManaged(pod)))) return undefined;
  const pending = phase === 'Pending' && metadata.deletionTimestamp === undefined;
  return {
    uid: metadata.uid,
    kubeletUid: staticUid(metadata.annotations) ?? metadata.uid,
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    vm,
    node,
    nominated: nominatedNodeName || undefined,
    pending,
    rejected,
    since: node === undefined ? metadata.creationTimestamp : undefined,
    unscheduled,
    padding: paddingOf(metadata),
    cpus: lastingCpus(needs.request),
    wholeCores: needs.wholeCores === true,
    networks: needs.networks.map(({ kind, physnet, affinity }) => [physnet ?? kind, affinity]),
    state: pending || rejected !== undefined ? stateOf(pod, vm) : undefined,
    needs,
    ...runs(pod, vm, needs),
  };
}

function runs(pod: WatchedPod, vm: string | undefined, needs: PlacementNeeds): Pick<ShownPod, 'running' | 'bypasses'> {
  const { metadata, spec, status } = pod;
  const isRunning = status?.phase === 'Running' && spec.nodeName && metadata.deletionTimestamp === undefined;
  if (!isRunning) return { running: undefined, bypasses: [] };
  const { namespace = '', name = '' } = metadata;
  const bypasses = bypassesOf({ namespace, name: vm ?? name, kind: undefined }, pod as StatePod, needs);
  return { running: status?.startTime ?? metadata.creationTimestamp ?? '', bypasses };
}

/** By the pod alone: whether a VM made its instance is not read here, nor what is true of its node. */
function stateOf(pod: WatchedPod, vm: string | undefined): ShownState {
  const { namespace = '', name = '' } = pod.metadata;
  const { verdict, reason, text } = vmState({ namespace, name: vm ?? name, kind: undefined, pod: pod as StatePod });
  return { verdict, reason, text: text.slice(0, LONGEST_MESSAGE) };
}

/**
 * Whether the page lists a pod among those that wait.
 * @param refusal what the agent of its node says, where it keeps the pod from starting
 */
export function waits(pod: ShownPod, refusal: string | undefined): boolean {
  if (pod.rejected !== undefined) return true;
  return pod.pending && (pod.node === undefined || refusal !== undefined);
}

/** The VM, if there is one: people know a launcher by its VM. */
export function labelOf({ namespace, name, vm }: ShownPod): string {
  return `${namespace}/${vm ?? name}`;
}

function rejectionOf({ status }: WatchedPod): string | undefined {
  const { phase, reason = '' } = status ?? {};
  return phase === 'Failed' && REJECTIONS.includes(reason) ? reason : undefined;
}

function schedulerMessage({ status }: WatchedPod): string | undefined {
  const attempt = status?.conditions?.find((one) => one.type === 'PodScheduled' && one.status === 'False');
  return attempt && (attempt.message ?? '').slice(0, LONGEST_MESSAGE);
}

function vmOf({ metadata }: WatchedPod): string | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner?.kind === 'VirtualMachineInstance' ? owner.name : undefined;
}

/** The API server has checked every quantity, so one that cannot be read is a form that is not known here. */
function readNeeds(pod: WatchedPod): PlacementNeeds | undefined {
  try {
    const { request, ...needs } = placementNeedsOf({
      ...pod,
      status: { qosClass: pod.status?.qosClass },
    } as Parameters<typeof placementNeedsOf>[0]);
    return { ...needs, request: reducedRequest(request) };
  } catch {
    return undefined;
  }
}

/** Whether the scheduler asks an extender about the pod. */
function isManaged({ spec }: WatchedPod): boolean {
  return spec.containers.some(({ resources }) => MANAGED_RESOURCES.some((name) => name in (resources?.requests ?? {})));
}

/** As the kubelet makes it: an MD5 sum, so that no pod of the API server has the same (pkg/kubelet/config/common.go). */
const STATIC_UID = /^[0-9a-f]{32}$/;

/** The uid of the static pod whose mirror this is. */
function staticUid(annotations: Readonly<Record<string, string>> = {}): string | undefined {
  const uid = annotations['kubernetes.io/config.hash'] ?? '';
  return 'kubernetes.io/config.mirror' in annotations && STATIC_UID.test(uid) ? uid : undefined;
}
