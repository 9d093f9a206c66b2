import type { ClusterState } from '../cluster/cluster-state.ts';
import type { DpuHealth } from '../cluster/dpu-health.ts';
import type { PodView } from '../cluster/pod-view.ts';
import type { EvictionReason, Evictions } from './evictions.ts';

export interface StuckPodsOptions {
  readonly state: Pick<ClusterState, 'startingOn'>;
  readonly isDpuHost: (node: string) => boolean;
  readonly dpuHealth: Pick<DpuHealth, 'verdict'>;
}

/** Tells of pods on a node that have not started whether they ever can. */
export function createStuckPods({ state, isDpuHost, dpuHealth }: StuckPodsOptions) {
  /** Why a pod cannot start on the node that it is bound to, or undefined. */
  const whyStuck = (pod: PodView): EvictionReason | undefined => {
    const node = pod.node ?? '';
    if (pod.refusedOnHost !== undefined) return { reason: 'ClaimRefused', text: `${node}: ${pod.refusedOnHost}` };
    if (!pod.needs.dpu || !isDpuHost(node)) return undefined;
    const { state: lease, age } = dpuHealth.verdict(node);
    if (lease !== 'dead') return undefined;
    const text = `the DPU of node ${node} has died before the pod started: last renewal ${Math.round(age ?? 0)} s ago`;
    return { reason: 'DPUNotReady', text };
  };

  return {
    /** Whether the pod still has not started and still cannot, asked right before it is evicted. */
    isStuck: (pod: PodView): boolean =>
      state.startingOn(pod.node ?? '').some(({ uid }) => uid === pod.uid) && whyStuck(pod) !== undefined,
    /** Hands a pod over to be evicted if it is stuck. */
    consider(pod: PodView, evictions: Evictions): void {
      const why = whyStuck(pod);
      if (why) evictions.consider(pod, why);
    },
  };
}
