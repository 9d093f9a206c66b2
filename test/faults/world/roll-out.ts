import { SCHEDULER } from '../../../model/names.ts';
import { objectsOf, render } from '../../real/install/rendered-fixture.ts';
import type { Daemons } from './daemons.ts';
import type { Replicas } from './replicas.ts';

/** Seconds within which a replaced pod must be ready. */
const READY = 60;

interface Update {
  readonly maxSurge?: number | string;
  readonly maxUnavailable?: number | string;
}

interface Workload {
  readonly spec: {
    readonly replicas?: number;
    readonly strategy?: { readonly rollingUpdate?: Update };
    readonly updateStrategy?: { readonly rollingUpdate?: Update };
  };
}

export type RollOut = ReturnType<typeof createRollOut>;

/** Replaces daemons by those of other bundles, as Kubernetes does with the shipped workloads. */
export function createRollOut({ webhooks, extenders, agents }: Daemons) {
  const objects = objectsOf(render('base'));
  const shipped = (kind: string, name: string): Workload['spec'] => {
    const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
    if (found === undefined) throw new Error(`the base has no ${kind} ${name}`);
    return (found as unknown as Workload).spec;
  };
  return {
    webhook: (dist: string) => rollDeployment(webhooks, dist, shipped('Deployment', 'plumbline-webhook')),
    extender: (dist: string) => rollDeployment(extenders, dist, shipped('Deployment', SCHEDULER)),
    async agent(dist: string) {
      const update = shipped('DaemonSet', 'plumbline-node-agent').updateStrategy?.rollingUpdate;
      // For a DaemonSet, a percentage is rounded up.
      const most = Math.ceil(shareOf(update?.maxUnavailable ?? 1, agents.length));
      for (let i = 0; i < agents.length; i += most) {
        await Promise.all(
          agents.slice(i, i + most).map(async (agent) => {
            await agent.replace(`${dist}/node-agent.cjs`);
            await agent.ready(READY);
          }),
        );
      }
    },
  };
}

/** Kubernetes' default is 25 % each: maxSurge is rounded up, maxUnavailable is rounded down. */
async function rollDeployment(set: Replicas, dist: string, { replicas = 1, strategy }: Workload['spec']) {
  const { maxSurge = '25%', maxUnavailable = '25%' } = strategy?.rollingUpdate ?? {};
  const more = Math.ceil(shareOf(maxSurge, replicas));
  const fewer = Math.floor(shareOf(maxUnavailable, replicas));
  if (replicas !== set.pods.length)
    throw new Error(`the manifest has ${replicas} replicas, here are ${set.pods.length}`);
  for (let left = replicas; left > 0; ) {
    const batch = Math.min(left, Math.max(1, more + fewer));
    const ending = async () => {
      for (let i = 0; i < batch; i++) await set.removeOldest();
    };
    // Pods that may be missing end before the new ones are ready, the others after.
    if (fewer > 0) await ending();
    for (let i = 0; i < batch; i++) await set.add(dist);
    if (fewer === 0) await ending();
    left -= batch;
  }
}

function shareOf(value: number | string, of: number): number {
  return typeof value === 'number' ? value : (of * Number.parseFloat(value)) / 100;
}
