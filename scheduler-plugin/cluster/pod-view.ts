import type * as z from 'zod';
import { word } from '../../kube/bounds.ts';
import { objectMeta, pod as podSchema, podStatus } from '../../kube/resources.ts';
import { paddingOf } from '../../model/admission/decision-annotation.ts';
import { ParseError } from '../../model/errors.ts';
import { isLauncher, vmiNameOf } from '../../model/launcher/recognize.ts';
import { MANAGED_RESOURCES } from '../../model/names.ts';
import { DPU_REFUSAL } from '../../model/placement/verdict.ts';
import { limitAmounts, type NeedsReader, type PodNeeds } from './pod-needs.ts';

/** A pod and its progress. It omits the messages of its containers' statuses, which a tenant may have written. */
export const observedPod = podSchema
  .extend({
    metadata: objectMeta.extend({ creationTimestamp: word.optional() }),
    status: podStatus.omit({ message: true }).nullish(),
  })
  .superRefine(limitAmounts);
export type ObservedPod = z.infer<typeof observedPod>;
type Status = Partial<NonNullable<ObservedPod['status']>>;

/** The stored part of a relevant pod. */
export interface PodView {
  readonly uid: string;
  /** The uid in the kubelet and its node's report. For a static pod, it differs from the uid of its mirror. */
  readonly kubeletUid: string;
  readonly namespace: string;
  readonly name: string;
  /** The VMI of a launcher as `namespace/name`, for log lines. */
  readonly vmi: string | undefined;
  readonly version: string;
  readonly node: string | undefined;
  readonly nominated: string | undefined;
  /** Whether no container has run yet. */
  readonly pending: boolean;
  readonly terminal: boolean;
  readonly deleting: boolean;
  /** Whether it is labelled as one of KubeVirt's launchers. */
  readonly launcher: boolean;
  /** Whether the scheduler has given up the node that it had chosen. */
  readonly dropped: boolean;
  /** Whether the scheduler found no node for it and asks an extender about it: a replica may have refused it. */
  readonly mayBeRefused: boolean;
  /** The kubelet's reason for rejecting it at admission. */
  readonly rejected: string | undefined;
  /** RFC 3339; for a pod without a node. */
  readonly since: string | undefined;
  /** CPUs that the webhook added for whole cores, for display. */
  readonly padding: number;
  readonly needs: PodNeeds;
}

/** The fields of a log line that say which pod it is about. */
export function namesOf({ namespace, name, vmi }: Pick<PodView, 'namespace' | 'name' | 'vmi'>) {
  return { pod: `${namespace}/${name}`, vmi };
}

const TERMINAL = new Set(['Succeeded', 'Failed']);
/**
 * The kubelet's reasons that depend on the node's resources and not on other fields of the pod, such as ports
 * (pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/cm, pkg/kubelet/nodeshutdown).
 */
const ADMISSION =
  /^(?:SMTAlignmentError|TopologyAffinityError|UnexpectedAdmissionError|NodeShutdown|OutOf[\w./-]{1,100})$/;

/**
 * The beginning of the scheduler's message that no node fits. It belongs to an attempt before the extender's last
 * answer, whatever its resourceVersion. If the last attempt had found no node after that answer, there would be no
 * reservation, and the scheduler queues a pod again before it writes the condition of the failed attempt. (An extender
 * that is called after this one may also refuse the nodes; the reservation then lasts until the pod's next attempt.)
 * Source: FitError.Error in pkg/scheduler/framework/types.go, handleSchedulingFailure in pkg/scheduler/schedule_one.go.
 */
const NO_NODE_FITS = '0/';

/**
 * Undefined for a pod that is not relevant, like most pods of a cluster. Relevant pods get CPUs of their own, may have
 * been refused by an extender, or wait on a node for their network.
 */
export function podViewOf(pod: ObservedPod, reader: Pick<NeedsReader, 'read'>): PodView | undefined {
  const { metadata, spec } = pod;
  const status: Status = pod.status ?? {};
  const phase = status.phase ?? 'Pending';
  const terminal = TERMINAL.has(phase);
  const rejected = phase === 'Failed' && ADMISSION.test(status.reason ?? '') ? status.reason : undefined;
  if (metadata.uid === undefined || (terminal && rejected === undefined)) return undefined;
  const node = filled(spec.nodeName);
  const pending = phase === 'Pending';
  const condition = node === undefined ? unscheduledCondition(status) : undefined;
  const mayBeRefused = condition?.reason === 'Unschedulable' && isAskedAbout(pod, condition.message);
  if (sharesCpus(status) && !mayBeRefused && !(pending && node !== undefined)) return undefined;
  const needs = readNeeds(pod, reader);
  const counts = needs?.exclusive || mayBeRefused || (pending && needs?.dpu && node !== undefined);
  if (needs === undefined || !counts) return undefined;
  const { uid, namespace = '', name = '', resourceVersion = '', deletionTimestamp } = metadata;
  return {
    uid,
    kubeletUid: staticUid(metadata.annotations) ?? uid,
    namespace,
    name,
    vmi: vmiNameOf(pod),
    version: resourceVersion,
    node,
    nominated: filled(status.nominatedNodeName),
    pending,
    terminal,
    deleting: deletionTimestamp !== undefined,
    launcher: isLauncher(metadata),
    dropped: condition !== undefined && condition.message?.startsWith(NO_NODE_FITS) !== true,
    mayBeRefused,
    rejected,
    since: node === undefined ? metadata.creationTimestamp : undefined,
    padding: paddingOf(metadata),
    needs,
  };
}

/** Whether the pod cannot get CPUs of its own, from its class alone: most pods of a cluster, which no one needs to read. */
function sharesCpus({ qosClass }: Status): boolean {
  return qosClass !== undefined && qosClass !== 'Guaranteed';
}

function filled(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

/**
 * The kubelet's form: an MD5 sum, which differs from the uid of any API server's pod (pkg/kubelet/config/common.go).
 */
const STATIC_UID = /^[0-9a-f]{32}$/;

/** The uid of the static pod that this mirror represents. */
function staticUid(annotations: Readonly<Record<string, string>> = {}): string | undefined {
  const uid = annotations['kubernetes.io/config.hash'] ?? '';
  return 'kubernetes.io/config.mirror' in annotations && STATIC_UID.test(uid) ? uid : undefined;
}

function unscheduledCondition({ conditions }: Status) {
  return conditions?.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
}

/**
 * Whether the scheduler asks an extender about the pod: because of its requests, or because the message of its
 * condition contains a refusal for a DPU. Pods without such requests get that refusal where the scheduler asks about
 * all pods.
 */
function isAskedAbout({ spec }: ObservedPod, message = ''): boolean {
  const requests = [...spec.containers, ...(spec.initContainers ?? [])].map(
    ({ resources }) => resources?.requests ?? {},
  );
  return requests.some((amounts) => MANAGED_RESOURCES.some((name) => name in amounts)) || message.includes(DPU_REFUSAL);
}

/** The API server has validated every quantity, so one that cannot be parsed has a form that is unknown here. */
function readNeeds(pod: ObservedPod, reader: Pick<NeedsReader, 'read'>): PodNeeds | undefined {
  try {
    return reader.read({ ...pod, status: { qosClass: pod.status?.qosClass } } as Parameters<NeedsReader['read']>[0]);
  } catch (error) {
    if (error instanceof ParseError) return undefined;
    throw error;
  }
}
