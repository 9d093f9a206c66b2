import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DemoContext } from './context.ts';
import { startDaemon } from './daemons.ts';
import { createVm, eventsOf, untilRunning } from './pods.ts';
import { until } from './until.ts';

/** `plumbline console` as a separate process. */
export interface ConsoleProcess {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Additional objects for the web console: a running VM, and one that waits because the VM of the steps has the cores
 * near its network.
 */
export async function createSceneForConsole({ cluster, printer }: DemoContext): Promise<void> {
  printer.progress('two more VMs: one that fits, and one that must wait');
  await createVm(cluster, { name: 'router', annotated: true, node: 'smt2' });
  await untilRunning(cluster, 'router', 15);
  await createVm(cluster, { name: 'firewall', annotated: true, network: 'dataplane' });
  await until('the scheduler to find no node for firewall', 15, () =>
    eventsOf(cluster, 'firewall').find(({ reason }) => reason === 'FailedScheduling'),
  );
}

/**
 * Starts the console. The embedded API server forwards no ports, so the console gets the addresses of the extender and
 * of the agents.
 * @param dist directory of the bundles
 * @throws StepFailed if the console does not serve
 */
export async function startConsole(
  { directory, installed }: DemoContext,
  dist: string,
  kubeconfig: string,
): Promise<ConsoleProcess> {
  const extender = `http://127.0.0.1:${await installed().extenderPort()}`;
  const agents: string[] = [];
  for (const [node, agent] of installed().agents) {
    agents.push('--agent', `${node}=http://127.0.0.1:${(await agent.ports()).probePort}`);
  }
  const args = ['console', '--kubeconfig', kubeconfig, '--extender', extender, ...agents];
  const { logFile, stop } = startDaemon({ name: 'console', program: join(dist, 'plumbline.mjs'), args, directory });
  const url = await until(
    `the console to be served (its log: ${logFile})`,
    10,
    () => /^console: (\S+)$/m.exec(readFileSync(logFile, 'utf8'))?.[1],
  );
  return { url, stop: () => stop() };
}
