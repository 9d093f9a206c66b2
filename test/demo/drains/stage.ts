import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createEmbeddedCluster } from '../../../cli/demo/cluster.ts';
import { startDaemon } from '../../../cli/demo/daemons.ts';
import type { DemoNode } from '../../../cli/demo/nodes.ts';
import { openVswitch } from '../../../cli/demo/open-vswitch.ts';
import { agentArgs, install } from '../../../cli/demo/plumbline.ts';
import { localnet } from '../../../cli/demo/vms.ts';
import { readDrain } from '../../../cli/drain/read.ts';
import type { DrainedVm } from '../../../diagnosis/drain.ts';
import { createKubeClient } from '../../../kube/api-transport.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import { nodeTopologyStatus } from '../../../kube/node-topology.ts';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import { DPU_LEASE_NAMESPACE } from '../../../model/names.ts';
import {
  MIGRATIONS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  NODE_TOPOLOGIES,
  NODES,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../../sandbox/api-server/built-in-types.ts';
import { ApiError } from '../../../sandbox/api-server/errors.ts';
import { at, type KubeObject, type KubePod } from '../../../sandbox/objects.ts';
import { dist, root } from '../../support/bundles.ts';
import { readMetric } from '../../support/daemon-metrics.ts';
import { createNamespaces, untilReported } from '../../support/demo-cluster.ts';
import { buildStage } from '../../support/stage.ts';
import { until } from '../../support/until.ts';
import { PHYSNETS } from './cluster-fixture.ts';

export const NAMESPACE = 'demo';

export type DrainStage = Awaited<ReturnType<typeof startDrainStage>>;

/** The embedded cluster with every daemon, and these nodes. */
export async function startDrainStage(nodes: readonly DemoNode[]) {
  return buildStage('plb-d-', async (directory, undo) => {
    const cluster = createEmbeddedCluster({
      directory,
      nodes,
      packageRoot: root,
      migrations: { copySeconds: 0 },
      // A pod that is deleted while it is placed, or an extender that is too busy: both are tried again.
      onFault: () => undefined,
    });
    undo(() => cluster.stop());
    await cluster.start();
    const { client } = cluster;
    await createNamespaces(cluster, NAMESPACE, DPU_LEASE_NAMESPACE);
    for (const name of PHYSNETS) await client.create(NETWORK_ATTACHMENT_DEFINITIONS, localnet(name, name, NAMESPACE));
    await mkdir(join(directory, 'vswitch'));
    const ovs = await openVswitch(dist, join(directory, 'vswitch'), { standIns: true });
    undo(() => ovs.stop());
    const installed = await install({ cluster, nodes, ovs, ovsNode: '', directory, dist });
    undo(() => installed.stop());
    const startAgain = (name: string, program: string, args: readonly string[]) => {
      const daemon = startDaemon({ name: `again-${name}`, program, args: [...args], directory });
      undo(() => daemon.stop());
      return daemon;
    };
    await installed.ready();
    await installed.wire();
    await untilReported(cluster, nodes);
    const api = createKubeClient(kubeconfigAccess(await cluster.kubeconfig({ kind: 'admin' })), 'drains');
    undo(() => api.close());
    const launchersOf = (vm: string) =>
      client.list(PODS).filter(({ metadata }) => metadata.labels?.['vm.kubevirt.io/name'] === vm);
    const unscheduled = (vm: string) =>
      launchersOf(vm).find(({ spec, status }) => {
        return !spec.nodeName && status?.conditions?.some(({ reason }) => reason === 'Unschedulable');
      });
    const vmi = (vm: string) => client.get(VIRTUAL_MACHINE_INSTANCES, NAMESPACE, vm);
    const assignmentsOn = (node: string) =>
      nodeTopologyStatus.parse(client.get(NODE_TOPOLOGIES, undefined, node)?.status).assignments;
    /** CPUs by node and pod, as the agents report them. */
    const reported = (node: string, uid = '') => {
      const ofPod = assignmentsOn(node).filter(({ podUID }) => podUID === uid);
      return unionOf(ofPod.map(({ cpus }) => CpuSet.parse(cpus)));
    };
    /** Whether the report of each node has the pods that own CPUs there, and no others. */
    const areReportsCurrent = () =>
      nodes.every(({ name }) => {
        const there = client.list(PODS).filter(({ spec, status, metadata }) => {
          return spec.nodeName === name && status?.phase === 'Running' && !metadata.deletionTimestamp;
        });
        const owners = there.filter(ownsCpus).map(({ metadata }) => metadata.uid);
        const named = new Set(assignmentsOn(name).map(({ podUID }) => podUID));
        return owners.length === named.size && owners.every((uid) => named.has(uid ?? ''));
      });
    /** Reservations end after the reports have the pods. While one is unbound, the extender chooses between fewer nodes. */
    const hasNoReservations = async () => {
      const { probePort } = await installed.schedulerPlugin.ports();
      return (await readMetric(probePort, 'plumbline_extender_reservations', { kind: 'unbound' })) === 0;
    };
    const settle = () =>
      until('the reports are current', async () => areReportsCurrent() && (await hasNoReservations()));

    const stage = {
      client,
      vmi,
      launchersOf,
      async stopAgent(node: string) {
        await installed.agents.get(node)?.stop();
      },
      async startAgent(name: string) {
        const node = nodes.find((description) => description.name === name)!;
        const args = await agentArgs(node, { cluster, ovs, ovsNode: '', directory });
        startAgain(name, join(dist, 'node-agent.cjs'), args);
      },
      /** Kills ovs-vswitchd, and starts it again. */
      restartSwitch() {
        process.kill(ovs.pids[0]!, 'SIGKILL');
        startAgain('ovs', join(dist, 'ovs-stand-in.cjs'), ['--name', 'ovs-vswitchd', '--rundir', ovs.rundir]);
      },
      /** Kills the extender, and starts it again on the same port. @param flags more arguments */
      async restartExtender(...flags: string[]) {
        const { schedulerPlugin } = installed;
        const { port } = await schedulerPlugin.ports();
        const [, program = '', ...args] = readFileSync(`/proc/${schedulerPlugin.pid}/cmdline`, 'utf8').split('\0');
        args[args.indexOf('--port') + 1] = String(port);
        await schedulerPlugin.stop('SIGKILL');
        await startAgain('extender', program, [...args.filter((arg) => arg !== ''), ...flags]).ready();
      },
      api,
      reported,
      settle,
      plan: (node: string) => readDrain(api, [node], Date.now()),
      unscheduled,
      /** Whether it runs. If no node takes it, it is deleted; if none could even be empty, the webhook denies it. */
      async start(machine: KubeObject): Promise<boolean> {
        const { name } = machine.metadata;
        const created = await client.create(VIRTUAL_MACHINES, machine).catch((error: unknown) => {
          if (error instanceof ApiError) return undefined;
          throw error;
        });
        if (created === undefined) return false;
        const runs = await until(`${name} runs or waits`, () => {
          if (vmi(name)?.status?.phase === 'Running') return 'runs';
          return unscheduled(name) && 'waits';
        });
        if (runs === 'waits') await stage.remove([name]);
        return runs === 'runs';
      },
      async remove(names: readonly string[] = client.list(VIRTUAL_MACHINES).map(({ metadata }) => metadata.name)) {
        for (const name of names) {
          for (const type of [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES]) {
            const object = client.get(type, NAMESPACE, name);
            if (object !== undefined) await client.delete(type, object);
          }
        }
        await until('the VMs are gone', () =>
          names.every((name) => vmi(name) === undefined && launchersOf(name).length === 0),
        );
        for (const one of client.list(MIGRATIONS)) await client.delete(MIGRATIONS, one);
        await until('the migrations are gone', () => client.list(MIGRATIONS).length === 0);
        await settle();
      },
      /** For a failure: what the VM asks for, and why its launcher waits. */
      describe({ name }: DrainedVm): string {
        const machine = client.get(VIRTUAL_MACHINES, NAMESPACE, name);
        const waits = unscheduled(name)?.status?.conditions?.[0]?.message ?? '';
        return `${JSON.stringify(at(machine, 'spec', 'template'))} ${waits}`;
      },
      /** As `virtctl evacuate-cancel`: as long as the eviction stands, another migration follows a deleted one. */
      async cancelMigration(vm: string) {
        await client.edit(VIRTUAL_MACHINE_INSTANCES, vmi(vm)!, ({ status }) => {
          delete status?.evacuationNodeName;
        });
        for (const one of client.list(MIGRATIONS).filter(({ spec }) => spec.vmiName === vm))
          await client.delete(MIGRATIONS, one);
        await until('its target is gone', () => launchersOf(vm).length === 1);
      },
      isRestarting: (vm: string) => at(client.get(VIRTUAL_MACHINES, NAMESPACE, vm), 'spec', 'runStrategy') === 'Always',
      cordon: (node: string, unschedulable: boolean) =>
        client.edit(NODES, client.get(NODES, undefined, node)!, (draft) => {
          draft.spec = { ...draft.spec, unschedulable };
        }),
      /** As kubectl drain. @returns why it is denied; undefined if the pod is deleted */
      async evict({ metadata: { name, namespace } }: KubePod): Promise<string | undefined> {
        const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
        const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
        return api.create(path, eviction).then(
          () => undefined,
          (error: Error) => error.message,
        );
      },
      guestOf: ({ name }: DrainedVm) => {
        const { nodeName } = vmi(name)?.status ?? {};
        return launchersOf(name).find(({ spec, status }) => spec.nodeName === nodeName && status?.phase === 'Running');
      },
    };
    return stage;
  });
}

function ownsCpus({ status, spec }: KubePod): boolean {
  const isWhole = (cpu: string | undefined) => cpu !== undefined && /^\d+$/.test(cpu);
  return (
    status?.qosClass === 'Guaranteed' && spec.containers.some(({ resources }) => isWhole(resources?.requests?.['cpu']))
  );
}
