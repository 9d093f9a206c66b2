import * as z from 'zod';
import { bypassesOf } from '../../diagnosis/bypasses.ts';
import { launcherState } from '../../diagnosis/launcher.ts';
import { millisecondsOf } from '../../diagnosis/objects.ts';
import { remedyLines } from '../../diagnosis/remedies.ts';
import type { VmState } from '../../diagnosis/state.ts';
import { vmiOwner } from '../../diagnosis/vms.ts';
import { list, name, word } from '../../kube/bounds.ts';
import {
  isFinalPhase,
  isForgedMirror,
  kubeletUid,
  reducedNeedsOf,
  requestsManaged,
  unscheduledCondition,
} from '../../kube/cluster-view/pods.ts';
import { connectionWrites, observedMeta, pod as podSchema, podStatus } from '../../kube/resources.ts';
import { paddingOf } from '../../model/admission/decision-annotation.ts';
import { readableOrNone } from '../../model/errors.ts';
import { lastingCpus } from '../../model/kubelet/pod-request.ts';
import { REJECTIONS } from '../../model/kubelet/provider.ts';
import { MIGRATION_LABEL } from '../../model/launcher/recognize.ts';
import { networkMadeAt } from '../../model/lease/dpu-run.ts';
import { SCHEDULER } from '../../model/names.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { isExclusive } from '../../model/placement/preferences.ts';

/** A pod with its progress. Container statuses are not read: tenants may write their messages. */
export const watchedPod = podSchema.extend({
  metadata: observedMeta.extend({ creationTimestamp: word.optional(), managedFields: connectionWrites }),
  spec: podSchema.shape.spec.extend({ schedulingGates: list(z.object({ name }), 64).nullish() }),
  status: podStatus.extend({ startTime: word.nullish() }).nullish(),
});
export type WatchedPod = z.infer<typeof watchedPod>;

export type ShownPod = NonNullable<ReturnType<typeof shownPod>>;

/** Characters of the scheduler's message, which contains reasons and no nodes. */
const MAX_MESSAGE_CHARACTERS = 1024;

/** The state in the record of a pod. The remedies are the texts of `plumbline explain`. */
export function shownState({ verdict, reason, text, remedies }: VmState) {
  return { verdict, reason, text: text.slice(0, MAX_MESSAGE_CHARACTERS), remedies: remedies.map(remedyLines) };
}

const isPending = ({ metadata, status }: WatchedPod) =>
  (status?.phase ?? 'Pending') === 'Pending' && metadata.deletionTimestamp === undefined;

export function shownPod(pod: WatchedPod) {
  const { metadata, spec } = pod;
  const { phase, reason = '', nominatedNodeName } = pod.status ?? {};
  const rejected = phase === 'Failed' && REJECTIONS.includes(reason) ? reason : undefined;
  const ended = isFinalPhase(phase) && rejected === undefined;
  if (metadata.uid === undefined || ended || isForgedMirror(pod)) return undefined;
  // A quantity that the API server has accepted and that cannot be parsed has a form that is unknown here: no needs.
  const needs = readableOrNone(() => reducedNeedsOf(pod));
  if (needs === undefined) return undefined;
  const node = spec.nodeName || undefined;
  const unscheduled = node === undefined ? schedulerMessage(pod) : undefined;
  const vm = vmiOwner(pod)?.name;
  const owns = isExclusive(needs) || needs.mask !== undefined;
  if (!owns && (unscheduled === undefined || (vm === undefined && !requestsManaged(pod)))) return undefined;
  const { uid, namespace = '', name = '', labels, creationTimestamp } = metadata;
  const pending = isPending(pod);
  return {
    uid,
    kubeletUid: kubeletUid(metadata) ?? uid,
    namespace,
    name,
    vm,
    node,
    networkMadeAt: networkMadeAt(pod),
    nominated: nominatedNodeName || undefined,
    pending,
    waitsForScheduler:
      pending && node === undefined && spec.schedulerName === SCHEDULER && !spec.schedulingGates?.length,
    rejected,
    since: node === undefined ? creationTimestamp : undefined,
    unscheduled,
    padding: paddingOf(metadata),
    cpus: lastingCpus(needs.request),
    wholeCores: needs.wholeCores === true,
    networks: needs.networks.map(({ kind, physnet, affinity }) => [physnet ?? kind, affinity] as const),
    migration: labels?.[MIGRATION_LABEL],
    created: millisecondsOf(creationTimestamp),
    needs,
    ...stateAlone(pod, vm, needs),
  };
}

/**
 * From the pod alone, without knowing whether its instance has a VM. For one that runs: when it started, RFC 3339, and
 * signs that a component of Plumbline never saw it; its node decides about its state.
 */
function stateAlone(pod: WatchedPod, vm: string | undefined, needs: PlacementNeeds) {
  const { metadata, spec, status } = pod;
  const { namespace = '', name = '', creationTimestamp = '' } = metadata;
  const named = { namespace, name: vm ?? name, kind: undefined };
  const runs = status?.phase === 'Running' && spec.nodeName && metadata.deletionTimestamp === undefined;
  if (!runs) return { launcher: launcherState(named, pod), running: undefined, bypasses: [] };
  return {
    launcher: undefined,
    running: status?.startTime ?? creationTimestamp,
    bypasses: bypassesOf(named, pod, needs),
  };
}

export function waits(pod: ShownPod, refusal: string | undefined): boolean {
  if (pod.rejected !== undefined) return true;
  return pod.pending && (pod.node === undefined || refusal !== undefined);
}

export const labelOf = ({ namespace, name, vm }: ShownPod): string => `${namespace}/${vm ?? name}`;

function schedulerMessage(pod: WatchedPod): string | undefined {
  const attempt = unscheduledCondition(pod);
  return attempt && (attempt.message ?? '').slice(0, MAX_MESSAGE_CHARACTERS);
}
