import { join } from 'node:path';
import type { ClusterOptions, DemoCluster } from '../../../cli/demo/cluster.ts';
import { DaemonPods, startDaemon } from '../../../cli/demo/daemons.ts';
import { DEMO_NODES } from '../../../cli/demo/nodes.ts';
import { openVswitch } from '../../../cli/demo/open-vswitch.ts';
import { install, OVS_NODE } from '../../../cli/demo/plumbline.ts';
import { DEMO_NAMESPACE } from '../../../cli/demo/vms.ts';
import { DPU_LEASE_NAMESPACE } from '../../../model/names.ts';
import { readComponents } from '../../../sandbox/api-server/openapi.ts';
import { plumbline } from '../../cli/run.ts';
import { buildOnce, dist, root } from '../../support/bundles.ts';
import { createNamespaces, untilReported } from '../../support/demo-cluster.ts';
import { buildStage } from '../../support/stage.ts';

/** A cluster with Plumbline as in the demo, whose parts can be killed. */
export type OutageStage = Awaited<ReturnType<typeof startOutageStage>>;

export async function startOutageStage(createCluster: (options: ClusterOptions) => DemoCluster) {
  buildOnce();
  return buildStage('out-', async (directory, undo) => {
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
    undo(() => cluster.stop());
    await cluster.start();
    await createNamespaces(cluster, DEMO_NAMESPACE, DPU_LEASE_NAMESPACE);
    const { physnets = {} } = DEMO_NODES.find(({ name }) => name === OVS_NODE) ?? {};
    const ovs = await openVswitch(dist, directory, { physnets, standIns: true });
    undo(() => ovs.stop());
    const installed = await install({ cluster, nodes: DEMO_NODES, ovs, ovsNode: OVS_NODE, directory, dist, pods });
    undo(() => installed.stop());
    await installed.ready();
    await installed.wire();
    await untilReported(cluster, DEMO_NODES);
    const kubeconfig = await cluster.kubeconfig({ kind: 'admin' });
    const program = join(dist, 'plumbline.mjs');
    const console_ = startDaemon({
      name: 'console',
      program,
      args: ['console', '--kubeconfig', kubeconfig],
      directory,
    });
    undo(() => console_.stop());
    return {
      cluster,
      installed,
      ovs,
      pods,
      directory,
      kubeconfig,
      console: console_,
      /** Calls it when the stage stops, before it stops its own parts. */
      adopt: undo,
      /** Runs the command against the cluster. */
      async plumbline(...args: string[]) {
        const env = { NO_COLOR: '1', COLUMNS: '400' };
        const { status, stdout, stderr } = await plumbline(args, { kubeconfig, env });
        return { status, output: stdout + stderr };
      },
    };
  });
}
