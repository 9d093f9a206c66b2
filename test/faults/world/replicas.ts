import { setTimeout as delay } from 'node:timers/promises';
import type { SchedulerProgram } from '../../real/control-plane-stage.ts';
import { httpCall } from '../../support/http-call.ts';
import { until } from '../../support/until.ts';
import type { Supervised } from './supervised.ts';

/** A pod of one container, or of several that start and stop together. */
export type ReplicaPod = Pick<Supervised, 'port' | 'running' | 'ready' | 'stop'>;

export type Replicas = Awaited<ReturnType<typeof createReplicas>>;

const READY = 60;
/** Milliseconds until callers learn of a new or removed pod: kube-proxy follows the EndpointSlice within a second. */
const ENDPOINTS_LAG = 1000;

/** The pods of a Deployment behind its Service. @param start starts the pod with this number, from 1 */
export async function createReplicas(
  count: number,
  dist: string,
  start: (number: number, dist: string) => Promise<ReplicaPod>,
) {
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
    /** Adds one from these bundles. Resolves when it is ready and callers find it. */
    async add(other: string) {
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

/** A pod of plumbline-scheduler: the extender is a sidecar, so kube-scheduler starts after it and ends before it. */
export function schedulerPair(extender: Supervised, startScheduler: () => Promise<SchedulerProgram>): ReplicaPod {
  let scheduler: Promise<SchedulerProgram> | undefined;
  return {
    port: extender.port,
    get running() {
      return extender.running;
    },
    async ready(seconds) {
      await extender.ready(seconds);
      scheduler ??= startScheduler();
      const program = await scheduler;
      await until(
        'kube-scheduler to be ready',
        async () => {
          program.assertAlive();
          // Its certificate is self-signed.
          return (await httpCall({ port: program.port, path: '/readyz', trust: 'any' })).status === 200;
        },
        seconds,
      );
    },
    async stop() {
      const own = await scheduler;
      own?.assertAlive();
      await own?.stop();
      await extender.stop();
    },
  };
}
