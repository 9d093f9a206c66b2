import { placeLostText } from '../../model/vm-state/starting.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import type { DpuHealth } from '../cluster/dpu-health.ts';
import type { PodView } from '../cluster/pod-view.ts';
import type { EvictionReason, Evictions, StuckPod } from './evictions.ts';

export interface StuckPodsOptions {
  readonly state: Pick<ClusterState, 'startingOn' | 'hostRefusals' | 'lostPlaces'>;
  readonly isDpuHost: (node: string) => boolean;
  readonly dpuHealth: Pick<DpuHealth, 'verdict'>;
}

/** Tells of pods on a node that have not started whether they ever can. */
export function createStuckPods({ state, isDpuHost, dpuHealth }: StuckPodsOptions) {
  /** Why a pod cannot start on the node that it is bound to, or undefined. */
  const whyStuck = (pod: PodView): EvictionReason | undefined => {
    const node = pod.node ?? '';
    // A static pod has no owner that would make it elsewhere: its kubelet makes the mirror again.
    if (pod.kubeletUid !== pod.uid) return undefined;
    const refusal = state.hostRefusals.of(node, pod);
    if (refusal !== undefined) return { reason: 'AllocationRefused', text: `${node}: ${refusal}` };
    if (state.lostPlaces.on(node).has(pod.uid)) return { reason: 'PlaceLost', text: placeLostText(node) };
    if (!pod.needs.dpu || !isDpuHost(node)) return undefined;
    const { state: lease, age } = dpuHealth.verdict(node);
    if (lease !== 'dead') return undefined;
    const text = `the DPU of node ${node} has died before the pod started: last renewal ${Math.round(age ?? 0)} s ago`;
    return { reason: 'DPUNotReady', text };
  };

  return {
    /** The pod as it is now, and why it cannot start; undefined if it has started, or can. */
    stuck(pod: PodView): StuckPod | undefined {
      const newest = state.startingOn(pod.node ?? '').find(({ uid }) => uid === pod.uid);
      const why = newest && whyStuck(newest);
      return newest && why && { pod: newest, why };
    },
    /** Hands a pod over to be evicted if it is stuck. */
    consider(pod: PodView, evictions: Evictions): void {
      const why = whyStuck(pod);
      if (why) evictions.consider(pod, why);
    },
  };
}
