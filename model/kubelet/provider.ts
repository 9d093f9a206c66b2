import type { ProviderHints } from './hint.ts';
import type { ContainerRequest } from './pod-request.ts';
import type { KubeletState } from './state.ts';

/**
 * One resource manager while it admits one pod. It works on a copy of its part of the state; `commit` writes that part
 * back. A pod that is refused halfway is committed and then removed, as the kubelet frees what such a pod holds before
 * it next decides anything.
 * Source: pkg/kubelet/cm/topologymanager/topology_manager.go, HintProvider.
 */
export interface Provider {
  /** Hints for one container, in container scope. */
  containerHints(container: ContainerRequest): ProviderHints;
  /** Hints for the pod as a whole, in pod scope. */
  podHints(): ProviderHints;
  /**
   * Gives a container its resources under the merged mask (null: anywhere).
   * @throws Rejection
   */
  allocate(container: ContainerRequest, mask: number | null, preferred: boolean): void;
  commit(state: KubeletState): KubeletState;
}
