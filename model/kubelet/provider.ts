import type { ProviderHints } from './hint.ts';
import type { ContainerRequest } from './pod-request.ts';
import type { KubeletState } from './state.ts';

/**
 * One resource manager during the admission of one pod. It works on a copy of its part of the state; `commit` writes
 * that part back. A pod that is refused halfway is committed and then removed, because the kubelet releases its
 * resources before the next decision.
 * Source: pkg/kubelet/cm/topologymanager/topology_manager.go, HintProvider.
 */
export interface Provider {
  /** Hints for one container, in container scope. */
  containerHints(container: ContainerRequest): ProviderHints;
  /** Hints for the pod as a whole, in pod scope. */
  podHints(): ProviderHints;
  /**
   * Allocates the resources of a container under the merged mask (null: any node).
   * @throws Rejection
   */
  allocate(container: ContainerRequest, mask: number | null, preferred: boolean): void;
  commit(state: KubeletState): KubeletState;
}
