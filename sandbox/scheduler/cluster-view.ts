import type { Node, Pod } from '../objects.ts';
import { plus, podRequests } from '../pod-requests.ts';
import type { Load } from './node-filters.ts';

/** The scheduler's data: nodes, pods that have not ended, and the chosen nodes of pods that are not bound. */
export function createClusterView() {
  const nodes = new Map<string, Node>();
  const pods = new Map<string, Pod>();
  const assumed = new Map<string, string>();
  const nodeOf = (pod: Pod) => pod.spec.nodeName || assumed.get(pod.metadata.uid ?? '');
  return {
    get nodes() {
      return [...nodes.values()];
    },
    loadOf(nodeName: string): Load {
      const there = [...pods.values()].filter((pod) => nodeOf(pod) === nodeName);
      return { pods: there.length, requested: there.map(podRequests).reduce(plus, new Map()) };
    },
    pod: (uid: string) => pods.get(uid),
    setPod(pod: Pod) {
      pods.set(pod.metadata.uid ?? '', pod);
      if (pod.spec.nodeName) assumed.delete(pod.metadata.uid ?? '');
    },
    removePod(uid: string) {
      pods.delete(uid);
      assumed.delete(uid);
    },
    setNode: (node: Node) => void nodes.set(node.metadata.name, node),
    removeNode: (name: string) => void nodes.delete(name),
    /** Counts a pod on a node before the API server reports it there. */
    assume: (uid: string, nodeName: string) => void assumed.set(uid, nodeName),
    forget: (uid: string) => void assumed.delete(uid),
  };
}
