import * as z from 'zod';
import { objectMeta, pod as podSchema } from '../../kube/resources.ts';
import { ParseError } from '../../model/errors.ts';
import { DECISION_ANNOTATION } from '../../model/names.ts';
import type { NeedsReader, PodNeeds } from './pod-needs.ts';

const waitingState = z.object({ reason: z.string().optional(), message: z.string().optional() });
const containerStatus = z.object({ state: z.object({ waiting: waitingState.nullish() }).nullish() });

/** A pod with what its kubelet says of its containers. */
export const observedPod = podSchema.extend({
  metadata: objectMeta.extend({ creationTimestamp: z.string().optional() }),
  status: z
    .object({
      phase: z.string().optional(),
      reason: z.string().optional(),
      message: z.string().optional(),
      nominatedNodeName: z.string().optional(),
      qosClass: z.string().optional(),
      conditions: z.array(z.object({ type: z.string(), status: z.string() })).nullish(),
      containerStatuses: z.array(containerStatus).nullish(),
      initContainerStatuses: z.array(containerStatus).nullish(),
    })
    .nullish(),
});
export type ObservedPod = z.infer<typeof observedPod>;

export interface PodOwner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

/** What is kept of a pod that matters here. */
export interface PodView {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  /** Its controller. */
  readonly owner: PodOwner | undefined;
  readonly node: string | undefined;
  readonly nominated: string | undefined;
  /** No container has run yet. */
  readonly pending: boolean;
  readonly terminal: boolean;
  readonly deleting: boolean;
  /** The scheduler has found no node for it. */
  readonly unscheduled: boolean;
  /** The kubelet's reason, where it was refused at admission. */
  readonly rejected: string | undefined;
  /** What the node's agent said, where it refused to let a container start. */
  readonly refusedOnHost: string | undefined;
  /** RFC 3339, of a pod that is on no node yet. */
  readonly since: string | undefined;
  /** CPUs that the webhook added for whole cores, to be shown to people. */
  readonly padding: number;
  readonly needs: PodNeeds;
}

const TERMINAL = new Set(['Succeeded', 'Failed']);
const ADMISSION = new Set(['SMTAlignmentError', 'TopologyAffinityError', 'UnexpectedAdmissionError']);

/**
 * How the kubelet words an error of a device plugin before a container starts; FailedPrecondition is the agent's code
 * for a claim that does not hold on the host. Seen on kubelet 1.36.
 */
const REFUSED_BEFORE_START = /PreStartContainer rpc failed.*code = FailedPrecondition desc = (.*)/s;

/**
 * Undefined for a pod that has nothing to do with this: nearly all pods of a cluster, of which nothing is kept. Kept are
 * those that get CPUs of their own, those that wait for a node, and those that wait on a node for their network.
 */
export function podViewOf(pod: ObservedPod, reader: NeedsReader): PodView | undefined {
  const { metadata, spec } = pod;
  const status = pod.status ?? {};
  const phase = status.phase ?? 'Pending';
  const terminal = TERMINAL.has(phase);
  const rejected = phase === 'Failed' ? filled(status.reason, ADMISSION) : undefined;
  if (metadata.uid === undefined || (terminal && rejected === undefined)) return undefined;
  const node = filled(spec.nodeName);
  const pending = phase === 'Pending';
  const unscheduled = node === undefined && isUnscheduled(status);
  const needs = readNeeds(pod, reader);
  const counts = needs?.exclusive || unscheduled || (pending && needs?.dpu && node !== undefined);
  if (needs === undefined || !counts) return undefined;
  const { uid, namespace = '', name = '', resourceVersion = '', deletionTimestamp } = metadata;
  return {
    uid,
    namespace,
    name,
    version: resourceVersion,
    owner: ownerOf(pod),
    node,
    nominated: filled(status.nominatedNodeName),
    pending,
    terminal,
    deleting: deletionTimestamp !== undefined,
    unscheduled,
    rejected,
    refusedOnHost: refusedOnHost(status),
    since: node === undefined ? metadata.creationTimestamp : undefined,
    padding: paddingOf(metadata.annotations?.[DECISION_ANNOTATION]),
    needs,
  };
}

/** A text that says something, and one of those that count. */
function filled(text: string | undefined, those?: ReadonlySet<string>): string | undefined {
  return text === undefined || text === '' || those?.has(text) === false ? undefined : text;
}

function isUnscheduled({ conditions }: NonNullable<ObservedPod['status']>): boolean {
  return (conditions ?? []).some(({ type, status }) => type === 'PodScheduled' && status === 'False');
}

export function ownerOf({ metadata }: Pick<ObservedPod, 'metadata'>): PodOwner | undefined {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
  return owner && { apiVersion: owner.apiVersion, kind: owner.kind, name: owner.name, uid: owner.uid };
}

const decisionShape = z.object({ padding: z.number().int().min(0).max(4096) });

/** What the webhook wrote down for people; of any other text nothing is made. */
function paddingOf(decision: string | undefined): number {
  if (decision === undefined) return 0;
  try {
    return decisionShape.safeParse(JSON.parse(decision)).data?.padding ?? 0;
  } catch {
    return 0;
  }
}

/** The API server has checked every quantity, so one that cannot be read is a form that is not known here. */
function readNeeds(pod: ObservedPod, reader: NeedsReader): PodNeeds | undefined {
  try {
    return reader.read({ ...pod, status: { qosClass: pod.status?.qosClass } } as Parameters<NeedsReader['read']>[0]);
  } catch (error) {
    if (error instanceof ParseError) return undefined;
    throw error;
  }
}

function refusedOnHost({ containerStatuses, initContainerStatuses }: NonNullable<ObservedPod['status']>) {
  for (const { state } of [...(initContainerStatuses ?? []), ...(containerStatuses ?? [])]) {
    const said = REFUSED_BEFORE_START.exec(state?.waiting?.message ?? '');
    if (said) return said[1] ?? '';
  }
  return undefined;
}
