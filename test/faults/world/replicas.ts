import { setTimeout as delay } from 'node:timers/promises';
import type { Supervised } from './supervised.ts';

/** A pod of one container, or of several that start and stop together. */
export type ReplicaPod = Pick<Supervised, 'port' | 'running' | 'ready' | 'stop'>;

/** The pods of a Deployment behind its Service. */
export interface Replicas {
  /** The pods that should run. */
  readonly pods: readonly ReplicaPod[];
  /** Ports that connections to the Service may reach. */
  endpoints(): readonly number[];
  /** Adds one from these bundles. Resolves when it is ready and callers find it. */
  add(dist: string): Promise<void>;
  /** Stops the oldest one. */
  removeOldest(): Promise<void>;
}

/** Seconds within which a pod must be ready. */
const READY = 60;
/** Milliseconds until callers learn of a new or removed pod: kube-proxy follows the EndpointSlice within a second. */
const ENDPOINTS_LAG = 1000;

/** @param start starts the pod with this number, counted from 1 */
export async function createReplicas(
  count: number,
  dist: string,
  start: (number: number, dist: string) => Promise<ReplicaPod>,
): Promise<Replicas> {
  const pods: ReplicaPod[] = [];
  /** Pods that were stopped a moment ago and still get calls. */
  const leaving = new Set<ReplicaPod>();
  const starting = new Set<ReplicaPod>();
  let started = 0;
  while (started < count) pods.push(await start(++started, dist));
  return {
    pods,
    endpoints() {
      return [...pods, ...leaving].filter((pod) => pod.running && !starting.has(pod)).map(({ port }) => port);
    },
    async add(other) {
      const pod = await start(++started, other);
      starting.add(pod);
      pods.push(pod);
      await pod.ready(READY);
      starting.delete(pod);
      await delay(ENDPOINTS_LAG);
    },
    async removeOldest() {
      const pod = pods.shift();
      if (pod === undefined) throw new RangeError('no pod is left');
      leaving.add(pod);
      const noticed = delay(ENDPOINTS_LAG).then(() => leaving.delete(pod));
      await Promise.all([pod.stop(), noticed]);
    },
  };
}
