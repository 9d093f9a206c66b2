import { request } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import type { SchedulerProgram } from '../../real/control-plane.ts';
import type { ReplicaPod } from './replicas.ts';
import type { Supervised } from './supervised.ts';

/**
 * A pod of the Deployment plumbline-scheduler: the extender is a sidecar, so kube-scheduler starts after it and ends
 * before it.
 * @param startScheduler starts its kube-scheduler
 */
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
      await schedulerReady(await scheduler, seconds);
    },
    async stop() {
      const own = await scheduler;
      own?.assertAlive();
      await own?.stop();
      await extender.stop();
    },
  };
}

async function schedulerReady(scheduler: SchedulerProgram, seconds: number): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!(await isReady(scheduler.port))) {
    scheduler.assertAlive();
    if (performance.now() > deadline) throw new Error(`kube-scheduler is not ready after ${seconds} s`);
    await delay(100);
  }
}

/** Its certificate is self-signed. */
function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path: '/readyz', rejectUnauthorized: false, agent: false };
    const call = request(options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    call.on('error', () => resolve(false));
    call.end();
  });
}
