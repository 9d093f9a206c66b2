import * as z from 'zod';
import { bypassesOf } from '../../diagnosis/bypasses.ts';
import { launcherState } from '../../diagnosis/launcher.ts';
import { remedyLines } from '../../diagnosis/remedies.ts';
import type { LauncherState, VmState } from '../../diagnosis/state.ts';
import { vmiOwner } from '../../diagnosis/vms.ts';
import { list, name, word } from '../../kube/bounds.ts';
import {
  isFinalPhase,
  isForgedMirror,
  kubeletUid,
  readNeeds,
  reducedNeedsOf,
  requestsManaged,
  unscheduledCondition,
} from '../../kube/cluster-view/pods.ts';
import { connectionWrites, objectMeta, pod as podSchema, podStatus } from '../../kube/resources.ts';
import { paddingOf } from '../../model/admission/decision-annotation.ts';
import { lastingCpus } from '../../model/kubelet/pod-request.ts';
import { REJECTIONS } from '../../model/kubelet/provider.ts';
import { MIGRATION_LABEL } from '../../model/launcher/recognize.ts';
import { networkMadeAt } from '../../model/lease/dpu-run.ts';
import { SCHEDULER } from '../../model/names.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { isExclusive } from '../../model/placement/preferences.ts';

/** A pod with its progress. Container statuses are not read: tenants may write their messages. */
export const watchedPod = podSchema.extend({
  metadata: objectMeta.extend({ creationTimestamp: word.optional(), managedFields: connectionWrites }),
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

export function shownPod(pod: WatchedPod) {
  const { metadata, spec } = pod;
  const { phase, nominatedNodeName } = pod.status ?? {};
  const rejected = rejectionOf(pod);
  const ended = isFinalPhase(phase) && rejected === undefined;
  if (metadata.uid === undefined || ended || isForgedMirror(pod)) return undefined;
  const needs = readNeeds(() => reducedNeedsOf(pod));
  if (needs === undefined) return undefined;
  const node = spec.nodeName || undefined;
  const unscheduled = node === undefined ? schedulerMessage(pod) : undefined;
  const vm = vmiOwner(pod)?.name;
  const owns = isExclusive(needs) || needs.mask !== undefined;
  if (!owns && (unscheduled === undefined || (vm === undefined && !requestsManaged(pod)))) return undefined;
  const pending = isPending(pod);
  const running = runs(pod, vm, needs);
  return {
    uid: metadata.uid,
    kubeletUid: kubeletUid(metadata) ?? metadata.uid,
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    vm,
    node,
    networkMadeAt: networkMadeAt(pod),
    nominated: nominatedNodeName || undefined,
    pending,
    waitsForScheduler: waitsForScheduler(pod),
    rejected,
    since: node === undefined ? metadata.creationTimestamp : undefined,
    unscheduled,
    padding: paddingOf(metadata),
    cpus: lastingCpus(needs.request),
    wholeCores: needs.wholeCores === true,
    networks: needs.networks.map(({ kind, physnet, affinity }) => [physnet ?? kind, affinity] as const),
    /** From the pod alone; undefined if it runs: then its node decides. */
    launcher: running.running === undefined ? launcherStateOf(pod, vm) : undefined,
    ...originOf(metadata),
    needs,
    ...running,
  };
}

/** For a running pod: when it started, RFC 3339, and signs that a component of Plumbline never saw it. */
function runs(pod: WatchedPod, vm: string | undefined, needs: PlacementNeeds) {
  const { metadata, spec, status } = pod;
  const isRunning = status?.phase === 'Running' && spec.nodeName && metadata.deletionTimestamp === undefined;
  if (!isRunning) return { running: undefined, bypasses: [] };
  const { namespace = '', name = '' } = metadata;
  const bypasses = bypassesOf({ namespace, name: vm ?? name, kind: undefined }, pod, needs);
  return { running: status?.startTime ?? metadata.creationTimestamp ?? '', bypasses };
}

function originOf({ labels, creationTimestamp = '' }: WatchedPod['metadata']) {
  return { migration: labels?.[MIGRATION_LABEL], created: Date.parse(creationTimestamp) || 0 };
}

/** Without its node, and without knowing whether its instance has a VM. */
function launcherStateOf(pod: WatchedPod, vm: string | undefined): LauncherState {
  const { namespace = '', name = '' } = pod.metadata;
  return launcherState({ namespace, name: vm ?? name, kind: undefined }, pod);
}

export function waits(pod: ShownPod, refusal: string | undefined): boolean {
  if (pod.rejected !== undefined) return true;
  return pod.pending && (pod.node === undefined || refusal !== undefined);
}

export function labelOf({ namespace, name, vm }: ShownPod): string {
  return `${namespace}/${vm ?? name}`;
}

function rejectionOf({ status }: WatchedPod): string | undefined {
  const { phase, reason = '' } = status ?? {};
  return phase === 'Failed' && REJECTIONS.includes(reason) ? reason : undefined;
}

function schedulerMessage(pod: WatchedPod): string | undefined {
  const attempt = unscheduledCondition(pod);
  return attempt && (attempt.message ?? '').slice(0, MAX_MESSAGE_CHARACTERS);
}

function isPending({ metadata, status }: WatchedPod): boolean {
  return (status?.phase ?? 'Pending') === 'Pending' && metadata.deletionTimestamp === undefined;
}

function waitsForScheduler(pod: WatchedPod): boolean {
  const { nodeName, schedulerName, schedulingGates } = pod.spec;
  return isPending(pod) && !nodeName && schedulerName === SCHEDULER && (schedulingGates ?? []).length === 0;
}
