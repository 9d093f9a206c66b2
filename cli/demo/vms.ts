import { nodeTopology } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { EVENTS, NODE_TOPOLOGIES, PODS, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import type { KubePod } from '../../sandbox/objects.ts';
import type { DemoCluster } from './cluster.ts';
import { DEMO_NAMESPACE, type DemoVm, demoMachine } from './machines.ts';
import { until } from './until.ts';

export async function createVm(cluster: DemoCluster, vm: DemoVm): Promise<KubePod> {
  let launcher: KubePod | undefined;
  // A watch, because KubeVirt deletes a launcher within milliseconds after the kubelet rejects it.
  const unfollow = cluster.client.follow(PODS, ({ type, object }) => {
    if (type !== 'DELETED' && isLauncherOf(object, vm.name)) launcher ??= object;
  });
  try {
    await cluster.client.create(VIRTUAL_MACHINES, demoMachine(vm));
    return await until(`the launcher pod of ${vm.name}`, 10, () => launcher);
  } finally {
    unfollow();
  }
}

export function demoLauncher(cluster: DemoCluster, vm: string): KubePod | undefined {
  return cluster.client.list(PODS).find((pod) => isLauncherOf(pod, vm));
}

function isLauncherOf({ metadata }: KubePod, vm: string): boolean {
  return metadata.namespace === DEMO_NAMESPACE && metadata.labels?.['vm.kubevirt.io/name'] === vm;
}

/** Waits until the VM's launcher runs. @throws StepFailed with the reason for the delay */
export async function untilRunning(cluster: DemoCluster, vm: string, seconds: number): Promise<KubePod> {
  try {
    return await until(`${vm} to run`, seconds, () => {
      const pod = demoLauncher(cluster, vm);
      return pod?.status?.phase === 'Running' ? pod : undefined;
    });
  } catch (error) {
    const messages = eventsOf(cluster, vm).map(({ message }) => message);
    throw new Error(`${(error as Error).message}; last heard: ${messages.at(-1) ?? 'nothing'}`, { cause: error });
  }
}

export function eventsOf(cluster: DemoCluster, vm: string) {
  const launcher = demoLauncher(cluster, vm)?.metadata.name;
  return cluster.client
    .list(EVENTS)
    .filter((event) => {
      const involved = event['involvedObject'] as { name?: string } | undefined;
      return involved?.name === launcher || involved?.name === vm;
    })
    .map((event) => ({ reason: String(event['reason']), message: String(event['message']) }));
}

export function computeOf(pod: KubePod) {
  const { requests = {}, limits = {} } = pod.spec.containers.find(({ name }) => name === 'compute')?.resources ?? {};
  return { requests, limits };
}

export const assignmentsOn = (cluster: DemoCluster, node: string) =>
  nodeTopology.parse(cluster.client.get(NODE_TOPOLOGIES, undefined, node)).status?.assignments ?? [];

export function reportedCpus(cluster: DemoCluster, node: string, uid: string): CpuSet | undefined {
  const assignment = assignmentsOn(cluster, node).find(({ podUID }) => podUID === uid);
  return assignment && CpuSet.parse(assignment.cpus);
}
