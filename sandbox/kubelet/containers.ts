import type { Pod } from '../objects.ts';

/** What runs in the containers of a node's pods. */
export interface Containers {
  /** Starts what the pod's containers run; the pod is Running once it resolves. */
  start(pod: Pod): Promise<void>;
  stop(podUID: string): Promise<void>;
}

/** Containers that run nothing. */
export const NO_CONTAINERS: Containers = {
  start: async () => undefined,
  stop: async () => undefined,
};
