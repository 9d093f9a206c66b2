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

/** Determines whether a pod that is on a node and has not started can ever start. */
export function createStuckPods({ state, isDpuHost, dpuHealth }: StuckPodsOptions) {
  /** Why a pod cannot start on the node that it is bound to, or undefined. */
  const whyStuck = (pod: PodView): EvictionReason | undefined => {
    const node = pod.node ?? '';
    // A static pod has no owner that would create it elsewhere: its kubelet creates the mirror again.
    if (pod.kubeletUid !== pod.uid) return undefined;
    const refusal = state.hostRefusals.of(node, pod);
    if (refusal !== undefined) return { reason: 'AllocationRefused', text: `${node}: ${refusal}` };
    if (state.lostPlaces.on(node).has(pod.uid)) return { reason: 'PlaceLost', text: placeLostText(node) };
    if (!pod.needs.dpu || !isDpuHost(node)) return undefined;
    const { state: lease, age } = dpuHealth.verdict(node);
    if (lease !== 'dead') return undefined;
    const seen = age === undefined ? 'its lease was never renewed' : `last renewal ${Math.round(age)} s ago`;
    const text = `the DPU of node ${node} has died before the pod started: ${seen}`;
    return { reason: 'DPUNotReady', text };
  };

  return {
    /** The current pod and why it cannot start; undefined if it has started, or can start. */
    stuck(pod: PodView): StuckPod | undefined {
      const newest = state.startingOn(pod.node ?? '').find(({ uid }) => uid === pod.uid);
      const why = newest && whyStuck(newest);
      return newest && why && { pod: newest, why };
    },
    /** Submits a pod for eviction if it is stuck. */
    consider(pod: PodView, evictions: Evictions): void {
      const why = whyStuck(pod);
      if (why) evictions.consider(pod, why);
    },
  };
}
