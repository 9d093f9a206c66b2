import { setTimeout as delay } from 'node:timers/promises';
import { formatMicroTime } from '../../model/lease/timing.ts';
import { inParallel, type Stage, startStage } from '../../test/real/scheduler/stage.ts';
import { until } from '../../test/support/until.ts';
import { createClient } from '../support/http-load.ts';
import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { filterBody, nodeName, nodeStatus } from './nodes.ts';
import { requireReports } from './schedule.ts';

const WAITING = 1000;
const LEASE = 'plumbline-system/takeover';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/plumbline-system/leases';
/** The last of eight nodes is full. */
const FULL = 7;
/** Seconds after a takeover in which tasks are measured. */
const AFTERWARDS = 15;

/**
 * A sidecar whose kube-scheduler becomes the leader, with thousands of full nodes and 1,000 waiting VMs: the longest
 * task of its event loop, and the duration of the first call after that.
 */
export async function takeover({ nodes, rounds }: BenchSettings): Promise<BenchResult[]> {
  const stage = await startStage();
  try {
    await stage.addNodes(
      Array.from({ length: nodes }, (_, i) => ({ name: nodeName(i), topology: nodeStatus(i * 8 + FULL) })),
    );
    await inParallel(
      Array.from({ length: WAITING }, (_, i) => `vm-${i}`),
      async (name) => addWaiting(stage, name),
    );
    await stage.client.create(LEASES, leaseOf('other_0'));
    const [tasks, answers]: [number[], number[]] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const { longestTask, firstAnswer } = await measure(stage, round, nodes);
      console.error(`# longest task ${longestTask.toFixed(0)} ms, first answer after ${firstAnswer.toFixed(0)} ms`);
      tasks.push(longestTask);
      answers.push(firstAnswer);
    }
    return [
      summary('takeover.longest-task-ms', tasks, { most: 50 }),
      summary('takeover.first-answer-ms', answers, { most: 200 }),
    ];
  } finally {
    await stage.stop();
  }
}

async function measure(stage: Stage, round: number, nodes: number) {
  const pod = `pair-${round}`;
  const replica = await stage.startReplica({ args: ['--scheduler-lease', LEASE], hostName: pod });
  // Time for the start-up work to end.
  await delay(2000);
  const longest = () => replica.metric('nodejs_eventloop_lag_max_seconds');
  await longest();
  const client = createClient({ port: replica.port, path: '/filter' });
  const path = `${LEASES}/takeover`;
  const patch = { spec: { holderIdentity: `${pod}_${round}`, renewTime: formatMicroTime(BigInt(Date.now()) * 1000n) } };
  await stage.client.patch(path, 'application/merge-patch+json', patch);
  const firstAnswer = await client.time(filterBody(nodes, round));
  await until('the sidecar to be active', () => replica.isActive());
  let longestTask = 0;
  for (let second = 0; second < AFTERWARDS; second++) {
    await delay(1000);
    longestTask = Math.max(longestTask, (await longest()) * 1000);
  }
  await requireReports(replica);
  client.close();
  await replica.stop();
  return { longestTask, firstAnswer };
}

function leaseOf(holderIdentity: string): object {
  const [namespace, name] = LEASE.split('/');
  const spec = { holderIdentity, leaseDurationSeconds: 60, renewTime: formatMicroTime(BigInt(Date.now()) * 1000n) };
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace }, spec };
}

/** A pod in the state in which kube-scheduler leaves it if no node fits. */
async function addWaiting(stage: Stage, name: string): Promise<void> {
  await stage.addPod({ name, cpu: '10', more: { schedulerName: 'plumbline-scheduler' } });
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'too few free CPUs' };
  await stage.client.patch(`/api/v1/namespaces/default/pods/${name}/status`, 'application/merge-patch+json', {
    status: { conditions: [condition] },
  });
}
