import * as z from 'zod';
import { name, uid, word } from '../../kube/bounds.ts';
import {
  isFinalPhase,
  isForgedMirror,
  kubeletUid,
  requestsManaged,
  unscheduledCondition,
} from '../../kube/cluster-view/pods.ts';
import { observedMeta, pod as podSchema, podStatus } from '../../kube/resources.ts';
import { readableOrNone } from '../../model/errors.ts';
import { resultOrNone } from '../../model/json.ts';
import { isLauncher, vmiNameOf } from '../../model/launcher/recognize.ts';
import { DPU_REFUSAL } from '../../model/placement/verdict.ts';
import { integralCpus } from '../../model/quantity.ts';
import { limitAmounts, type NeedsReader, needsOfCpus } from './pod-needs.ts';

/** Without the messages of its containers' statuses, which a tenant may have written. */
export const observedPod = podSchema
  .extend({
    metadata: observedMeta.extend({ deletionGracePeriodSeconds: z.number().optional().catch(undefined) }),
    status: podStatus.omit({ message: true }).nullish(),
  })
  .superRefine(limitAmounts);
export type ObservedPod = z.infer<typeof observedPod>;
type Status = Partial<NonNullable<ObservedPod['status']>>;

export type PodView = Readonly<NonNullable<ReturnType<typeof podViewOf>>>;

export function namesOf({ namespace, name, vmi }: Pick<PodView, 'namespace' | 'name' | 'vmi'>) {
  return { pod: `${namespace}/${name}`, vmi };
}

const filled = (text: string | undefined) => (text === '' ? undefined : text);

/** Reasons that depend on the node's resources (pkg/kubelet/lifecycle/predicate.go, cm, nodeshutdown). */
const ADMISSION =
  /^(?:SMTAlignmentError|TopologyAffinityError|UnexpectedAdmissionError|NodeShutdown|OutOf[\w./-]{1,100})$/;

/**
 * The scheduler's message that no node fits belongs to an attempt before the extender's last answer, whatever its
 * resourceVersion: after a failed attempt it queues the pod again before it writes the condition.
 * Source: FitError.Error in pkg/scheduler/framework/types.go, handleSchedulingFailure in pkg/scheduler/schedule_one.go.
 */
const NO_NODE_FITS = '0/';

/** Relevant pods get CPUs of their own, may have been refused by an extender, or wait on a node for their network. */
export function podViewOf(pod: ObservedPod, reader: Pick<NeedsReader, 'read'>) {
  const { metadata, spec } = pod;
  const status: Status = pod.status ?? {};
  const phase = status.phase ?? 'Pending';
  const terminal = isFinalPhase(phase);
  const rejected = phase === 'Failed' && ADMISSION.test(status.reason ?? '') ? status.reason : undefined;
  if (metadata.uid === undefined || (terminal && rejected === undefined) || isForgedMirror(pod)) return undefined;
  const node = filled(spec.nodeName);
  const pending = phase === 'Pending';
  const condition = node === undefined ? unscheduledCondition(pod) : undefined;
  const mayBeRefused = condition?.reason === 'Unschedulable' && isAskedAbout(pod, condition.message);
  // Most pods of a cluster share their CPUs, by their class alone.
  const sharesCpus = status.qosClass !== undefined && status.qosClass !== 'Guaranteed';
  if (sharesCpus && !mayBeRefused && !(pending && node !== undefined)) return undefined;
  // A quantity that the API server has accepted and that cannot be parsed has a form that is unknown here: no needs.
  const needs = readableOrNone(() => reader.read(pod));
  const counts = needs?.exclusive || mayBeRefused || (pending && needs?.dpu && node !== undefined);
  if (needs === undefined || !counts) return undefined;
  const { uid, namespace = '', name = '', resourceVersion = '', deletionTimestamp } = metadata;
  return {
    uid,
    /** The uid in the kubelet and its node's report. For a static pod, it differs from the uid of its mirror. */
    kubeletUid: kubeletUid(metadata) ?? uid,
    namespace,
    name,
    /** The VMI of a launcher as `namespace/name`, for log lines. */
    vmi: vmiNameOf(pod),
    version: resourceVersion,
    node,
    nominated: filled(status.nominatedNodeName),
    /** Whether no container has run yet. */
    pending,
    terminal,
    deleting: deletionTimestamp !== undefined,
    /** While it is being deleted. */
    graceSeconds: graceSecondsOf(pod),
    launcher: isLauncher(metadata),
    /** Whether the scheduler has given up the node that it had chosen. */
    dropped: condition !== undefined && condition.message?.startsWith(NO_NODE_FITS) !== true,
    /** Whether the scheduler found no node for it and asks an extender about it: a replica may have refused it. */
    mayBeRefused,
    /** The kubelet's reason for rejecting it at admission. */
    rejected,
    needs,
  };
}

const rawAmounts = z.object({ cpu: z.union([z.string(), z.number()]).transform(String).optional() }).optional();
const rawResources = z.object({ requests: rawAmounts, limits: rawAmounts }).optional();
const rawContainer = z.object({ resources: rawResources });
const rawContainers = z.array(rawContainer).optional().catch(undefined);
/** What the API server guarantees of every pod. */
const rawPod = z.object({
  metadata: z.object({
    uid,
    namespace: name,
    name,
    resourceVersion: word,
    deletionTimestamp: z.string().optional().catch(undefined),
    deletionGracePeriodSeconds: z.number().optional().catch(undefined),
  }),
  spec: z.object({ nodeName: name.optional(), containers: rawContainers, initContainers: rawContainers }),
  status: z.object({ phase: word, qosClass: word.optional() }),
});

/**
 * A pod that cannot be read, and may hold CPUs anyway: its last readable form, else only its exclusive CPUs on its
 * node. @returns undefined if it holds nothing
 */
export function unreadablePodView(object: unknown, before: PodView | undefined): PodView | undefined {
  const { data: raw } = rawPod.safeParse(object);
  if (raw === undefined) return before;
  const { metadata, spec, status } = raw;
  const node = filled(spec.nodeName);
  if (isFinalPhase(status.phase)) return undefined;
  const current = {
    version: metadata.resourceVersion,
    node,
    pending: status.phase === 'Pending',
    deleting: metadata.deletionTimestamp !== undefined,
    graceSeconds: graceSecondsOf(raw),
  };
  if (before?.uid === metadata.uid) return { ...before, ...current };
  const containers = [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
  const cpus = containers.reduce((sum, { resources }) => {
    const text = resources?.requests?.cpu ?? resources?.limits?.cpu ?? '0';
    return sum + (resultOrNone(() => integralCpus(text)) ?? 0);
  }, 0);
  if (node === undefined || status.qosClass !== 'Guaranteed' || cpus === 0) return undefined;
  return {
    ...current,
    uid: metadata.uid,
    kubeletUid: metadata.uid,
    namespace: metadata.namespace,
    name: metadata.name,
    vmi: undefined,
    nominated: undefined,
    terminal: false,
    launcher: false,
    dropped: false,
    mayBeRefused: false,
    rejected: undefined,
    needs: needsOfCpus(metadata.uid, metadata.namespace, cpus),
  };
}

type Deletion = Pick<ObservedPod['metadata'], 'deletionTimestamp' | 'deletionGracePeriodSeconds'>;

function graceSecondsOf({ metadata }: { readonly metadata: Deletion }): number | undefined {
  return metadata.deletionTimestamp === undefined ? undefined : (metadata.deletionGracePeriodSeconds ?? 0);
}

/** By its requests, or by a refusal for a DPU in its condition, which other pods get, too. */
function isAskedAbout(pod: ObservedPod, message = ''): boolean {
  return requestsManaged(pod) || message.includes(DPU_REFUSAL);
}
