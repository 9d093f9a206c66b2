import type { DemoContext } from './context.ts';
import { createVm, eventsOf, untilRunning } from './pods.ts';
import { until } from './until.ts';

/**
 * More to look at in the web console: a VM that runs, and one that waits, since the cores beside its network are taken
 * by the steps' own VM.
 */
export async function createSceneForConsole({ cluster, printer }: DemoContext): Promise<void> {
  printer.progress('two more VMs: one that fits, and one that has to wait');
  await createVm(cluster, { name: 'router', annotated: true, node: 'smt2' });
  await untilRunning(cluster, 'router', 15);
  await createVm(cluster, { name: 'firewall', annotated: true, network: 'dataplane' });
  await until('the scheduler to find no node for firewall', 15, () =>
    eventsOf(cluster, 'firewall').find(({ reason }) => reason === 'FailedScheduling'),
  );
}
