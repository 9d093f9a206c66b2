import type { Pod } from '../objects.ts';

/** Runs the containers of a node's pods. */
export interface Containers {
  /** Starts the pod's containers. The pod is Running once the promise resolves. */
  start(pod: Pod): Promise<void>;
  stop(podUID: string): Promise<void>;
}

/** Containers that run nothing. */
export const NO_CONTAINERS: Containers = {
  start: async () => undefined,
  stop: async () => undefined,
};
