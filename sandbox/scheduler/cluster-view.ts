import type { Node, Pod } from '../objects.ts';
import { plus, podRequests } from '../pod-requests.ts';
import type { Snapshot } from './decision.ts';
import type { Load } from './node-filters.ts';

/** The scheduler's data: nodes, pods that have not ended, and the chosen nodes of pods that are not bound. */
export interface ClusterView extends Snapshot {
  pod(uid: string): Pod | undefined;
  setPod(pod: Pod): void;
  removePod(uid: string): void;
  setNode(node: Node): void;
  removeNode(name: string): void;
  /** Counts a pod on a node before the API server reports it there. */
  assume(uid: string, nodeName: string): void;
  forget(uid: string): void;
}

export function createClusterView(): ClusterView {
  const nodes = new Map<string, Node>();
  const pods = new Map<string, Pod>();
  const assumed = new Map<string, string>();
  const nodeOf = (pod: Pod) => pod.spec.nodeName || assumed.get(pod.metadata.uid ?? '');
  return {
    get nodes() {
      return [...nodes.values()];
    },
    loadOf(nodeName): Load {
      const there = [...pods.values()].filter((pod) => nodeOf(pod) === nodeName);
      return { pods: there.length, requested: there.map(podRequests).reduce(plus, new Map()) };
    },
    pod: (uid) => pods.get(uid),
    setPod(pod) {
      pods.set(pod.metadata.uid ?? '', pod);
      if (pod.spec.nodeName) assumed.delete(pod.metadata.uid ?? '');
    },
    removePod(uid) {
      pods.delete(uid);
      assumed.delete(uid);
    },
    setNode: (node) => void nodes.set(node.metadata.name, node),
    removeNode: (name) => void nodes.delete(name),
    assume: (uid, nodeName) => void assumed.set(uid, nodeName),
    forget: (uid) => void assumed.delete(uid),
  };
}
