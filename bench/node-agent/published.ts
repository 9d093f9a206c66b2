import { setTimeout as delay } from 'node:timers/promises';
import { createKubeClient } from '../../kube/api-transport.ts';
import { apiAccess } from '../../kube/daemon-access.ts';
import { type BenchResult, paced, quantile } from '../support/timing.ts';
import { type AgentProcess, NODE, replaceCheckpoint, startAgentProcess } from './agent-process.ts';

const CHANGES = 150;
const ROUND_TRIPS = 200;
/** Milliseconds in which the agent combines changes into one write. */
const WINDOW = 200;
const PATH = `/apis/plumbline.dev/v1alpha1/nodetopologies/${NODE}`;

/**
 * Time from a rename of cpu_manager_state to the API server's report that contains it, relative to the coalescing
 * window and two round trips to that API server. Changes occur at random times within two windows of each other.
 */
export async function renameToPublished(): Promise<BenchResult> {
  const agent = await startAgentProcess();
  const access = await apiAccess(agent.kubeconfig);
  const client = createKubeClient(access, 'plumbline-bench');
  try {
    const trips: number[] = [];
    for (let trip = 0; trip < ROUND_TRIPS; trip++) {
      const begun = performance.now();
      await client.get(PATH);
      trips.push(performance.now() - begun);
    }
    const millis: number[] = [];
    for (let change = 1; change <= paced(CHANGES); change++) millis.push(await publishedAfter(agent, change));
    const allowed = WINDOW + 2 * quantile(trips, 0.99);
    return {
      name: 'node-agent.rename-to-published-p99-over-window-and-2-trips',
      ratio: quantile(millis, 0.99) / allowed,
      spread: [quantile(millis, 0) / allowed, quantile(millis, 1) / allowed],
      bound: '<= 1',
      holds: quantile(millis, 0.99) <= allowed,
    };
  } finally {
    await client.close();
    await agent.stop();
  }
}

/** Milliseconds until the stored object names the pod of change number `change`. */
async function publishedAfter({ sandbox, kubeletDir }: AgentProcess, change: number): Promise<number> {
  await delay(Math.random() * 2 * WINDOW);
  const slot = (change + 59) % 60;
  const uid = String(slot * 1_000_000 + Math.floor((change + 59 - slot) / 60)).padStart(12, '0');
  const begun = performance.now();
  const published = new Promise<void>((resolve) => {
    const end = sandbox.server.store.subscribe(({ object }) => {
      if (object.kind !== 'NodeTopology' || !JSON.stringify(object).includes(uid)) return;
      end();
      resolve();
    });
  });
  replaceCheckpoint(kubeletDir, change);
  await published;
  return performance.now() - begun;
}
