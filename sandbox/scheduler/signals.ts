import { type Json, type Node, type Pod, sameJson } from '../objects.ts';

/**
 * Whether a Node's change makes kube-scheduler retry rejected pods: a change of labels, annotations, taints, cordon,
 * allocatable amounts, or the status of a condition. A heartbeat does not.
 * @param previous undefined for a new Node
 */
export function nodeWakes(node: Node, previous: Node | undefined): boolean {
  return previous === undefined || !sameJson(facts(node), facts(previous));
}

function facts({ metadata, spec, status }: Node): Json {
  return {
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    taints: spec?.taints ?? [],
    unschedulable: spec?.unschedulable ?? false,
    allocatable: status?.allocatable ?? {},
    conditions: Object.fromEntries((status?.conditions ?? []).map((condition) => [condition.type, condition.status])),
  };
}

/** Whether a pod's change makes kube-scheduler retry rejected pods: every add, update and delete of a pod on a node. */
export function podWakes(pod: Pod, previous: Pod | undefined): boolean {
  return Boolean(pod.spec.nodeName || previous?.spec.nodeName);
}

/** Whether a waiting pod changed in a field that affects its scheduling: anything but its status and bookkeeping. */
export function podChangedItself(pod: Pod, previous: Pod): boolean {
  const own = ({ metadata, spec }: Pod): Json => ({
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    spec,
  });
  return !sameJson(own(pod), own(previous));
}
