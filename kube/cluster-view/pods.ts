import { reducedRequest } from '../../model/kubelet/pod-request.ts';
import { MANAGED_RESOURCES } from '../../model/names.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { placementNeedsOf } from '../../model/placement/preferences.ts';
import type { ConditionShape, PodShape } from '../../model/shapes.ts';

export const PODS_PATH = '/api/v1/pods';

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
/** An MD5 sum, which no API server's uid is (pkg/kubelet/config/common.go). */
const STATIC_UID = /^[0-9a-f]{32}$/;

/** The uid in the kubelet and its node's report. For a static pod, it differs from the uid of its mirror. */
export function kubeletUid({ uid, annotations = {} }: PodShape['metadata']): string | undefined {
  const staticUid = annotations['kubernetes.io/config.hash'] ?? '';
  return annotations[MIRROR_ANNOTATION] !== undefined && STATIC_UID.test(staticUid) ? staticUid : uid;
}

/** No kubelet takes a mirror pod that it has not made itself, and no one can make a pod a mirror pod later. */
export function isForgedMirror({ metadata, spec }: Pick<PodShape, 'metadata' | 'spec'>): boolean {
  if (metadata.annotations?.[MIRROR_ANNOTATION] === undefined) return false;
  return !metadata.ownerReferences?.some(({ kind, name }) => kind === 'Node' && name === spec.nodeName);
}

/** Of a pod, a VMI or a migration. */
export const isFinalPhase = (phase: string | null | undefined): phase is 'Succeeded' | 'Failed' =>
  phase === 'Succeeded' || phase === 'Failed';

/** The condition that the scheduler writes when it finds no node. */
export function unscheduledCondition({ status }: Pick<PodShape, 'status'>): ConditionShape | undefined {
  return status?.conditions?.find((condition) => condition.type === 'PodScheduled' && condition.status === 'False');
}

/** Whether kube-scheduler asks the extender about it, by its requests. */
export function requestsManaged({ spec }: Pick<PodShape, 'spec'>): boolean {
  return [...spec.containers, ...(spec.initContainers ?? [])].some(({ resources }) =>
    MANAGED_RESOURCES.some((name) => name in (resources?.requests ?? {})),
  );
}

/** What it needs on a node, in the kubelet's reduced form. @throws ParseError if an amount is not a quantity */
export function reducedNeedsOf(pod: PodShape): PlacementNeeds {
  const needs = placementNeedsOf(pod);
  return { ...needs, request: reducedRequest(needs.request) };
}
