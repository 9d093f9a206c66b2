import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sidecarConfiguration } from '../../cli/demo/manifests.ts';
import { type ExtenderSettings, inParallel, startStage } from '../../test/real/scheduler/stage.ts';
import { root } from '../../test/support/bundles.ts';
import type { BenchSettings } from '../support/settings.ts';
import { type BenchResult, summary } from '../support/timing.ts';
import { nodeName } from './nodes.ts';
import { schedule } from './schedule.ts';

const ORDINARY = { cpu: '500m', devices: [] };
const [NODES, PODS, VMS] = [200, 2000, 20];

/**
 * Pods per second of the cluster's own kube-scheduler while Plumbline's extender hangs and VMs wait for it, relative to
 * the same cluster without Plumbline, in turns.
 */
export async function ordinaryDuringOutage({ rounds }: BenchSettings): Promise<BenchResult[]> {
  const stage = await startStage();
  const hung = createServer(() => undefined);
  await new Promise<void>((resolve) => {
    hung.listen(0, '127.0.0.1', resolve);
  });
  try {
    await stage.addNodes(Array.from({ length: NODES }, (_, i) => ({ name: nodeName(i) })));
    const { port } = hung.address() as AddressInfo;
    const { extenders } = (await sidecarConfiguration(root, port)) as { extenders: ExtenderSettings[] };
    const run = async () => {
      const [one] = await schedule(stage, [{ extenders: [], pod: ORDINARY, pods: PODS, percentage: undefined }]);
      if (one === undefined) throw new Error('nothing was measured');
      return one.podsASecond;
    };
    const duringOutage = async () => {
      const vms = Array.from({ length: VMS }, (_, i) => `vm-${i}`);
      const scheduler = await stage.startScheduler({ name: 'plumbline-scheduler', extenders });
      const more = { schedulerName: 'plumbline-scheduler' };
      await inParallel(vms, async (name) => stage.addPod({ name, cpu: '4', more }));
      const rate = await run();
      await scheduler.stop();
      await inParallel(
        vms,
        async (name) => void (await stage.client.delete(`/api/v1/namespaces/default/pods/${name}`)),
      );
      return rate;
    };
    await run();
    const ratios: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const first = round % 2 === 0 ? await duringOutage() : await run();
      const second = round % 2 === 0 ? await run() : await duringOutage();
      const [outage, alone] = round % 2 === 0 ? [first, second] : [second, first];
      console.error(`# ${outage.toFixed(0)} pods a second during the outage, ${alone.toFixed(0)} without Plumbline`);
      ratios.push(outage / alone);
    }
    return [summary('outage.ordinary-pods-over-no-plumbline', ratios, { least: 0.9 })];
  } finally {
    hung.closeAllConnections();
    hung.close();
    await stage.stop();
  }
}
