import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClusterOptions, DemoCluster } from '../../../cli/demo/cluster.ts';
import { DaemonPods, startDaemon } from '../../../cli/demo/daemons.ts';
import { DEMO_NODES } from '../../../cli/demo/nodes.ts';
import { openVswitch } from '../../../cli/demo/open-vswitch.ts';
import { install, OVS_NODE } from '../../../cli/demo/plumbline.ts';
import { until } from '../../../cli/demo/until.ts';
import { DEMO_NAMESPACE } from '../../../cli/demo/vms.ts';
import { DPU_LEASE_NAMESPACE } from '../../../model/names.ts';
import { NAMESPACES, NODE_TOPOLOGIES } from '../../../sandbox/api-server/built-in-types.ts';
import { readComponents } from '../../../sandbox/api-server/openapi.ts';
import { buildOnce, dist, root } from '../../support/bundles.ts';

/** A cluster with Plumbline as in the demo, whose parts can be killed. */
export type OutageStage = Awaited<ReturnType<typeof startOutageStage>>;

export async function startOutageStage(createCluster: (options: ClusterOptions) => DemoCluster) {
  buildOnce();
  // Short: unix sockets below it may have paths of at most 107 bytes.
  const directory = mkdtempSync(join(tmpdir(), 'out-'));
  const undo: (() => Promise<unknown>)[] = [async () => rmSync(directory, { recursive: true, force: true })];
  const stop = async () => {
    for (const one of undo.toReversed()) await one();
  };
  try {
    const pods = new DaemonPods();
    const cluster = createCluster({
      directory,
      nodes: DEMO_NODES,
      packageRoot: root,
      components: await readComponents(join(dist, 'api-schemas.json')),
      processes: pods,
      // Calls of daemons that the test has killed.
      onFault: () => undefined,
    });
    undo.push(() => cluster.stop());
    await cluster.start();
    for (const name of [DEMO_NAMESPACE, DPU_LEASE_NAMESPACE]) {
      await cluster.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    const { physnets = {} } = DEMO_NODES.find(({ name }) => name === OVS_NODE) ?? {};
    const ovs = await openVswitch(dist, directory, { physnets, standIns: true });
    undo.push(() => ovs.stop());
    const installed = await install({ cluster, nodes: DEMO_NODES, ovs, ovsNode: OVS_NODE, directory, dist, pods });
    undo.push(() => installed.stop());
    await installed.ready();
    await installed.wire();
    for (const { name } of DEMO_NODES) {
      await until(`the report of ${name}`, 30, () => cluster.client.get(NODE_TOPOLOGIES, undefined, name)?.status);
    }
    const kubeconfig = await cluster.kubeconfig({ kind: 'admin' });
    const program = join(dist, 'plumbline.mjs');
    const console_ = startDaemon({
      name: 'console',
      program,
      args: ['console', '--kubeconfig', kubeconfig],
      directory,
    });
    undo.push(() => console_.stop());
    return {
      cluster,
      installed,
      ovs,
      pods,
      directory,
      kubeconfig,
      console: console_,
      /** Calls it when the stage stops, before it stops its own parts. */
      adopt: (end: () => Promise<unknown>) => void undo.push(end),
      /** Runs the command against the cluster. */
      plumbline: (...args: string[]) => run(program, args, kubeconfig),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function run(program: string, args: string[], kubeconfig: string): Promise<{ status: number; output: string }> {
  const env = { ...process.env, KUBECONFIG: kubeconfig, NO_COLOR: '1', COLUMNS: '400' };
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { env }, (error, stdout, stderr) => {
      resolve({ status: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr });
    });
  });
}
