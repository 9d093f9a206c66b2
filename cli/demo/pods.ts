import { EVENTS, PODS, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import type { Pod } from '../../sandbox/objects.ts';
import type { DemoCluster } from './cluster.ts';
import { DEMO_NAMESPACE, type DemoVm, virtualMachine } from './objects.ts';
import { until } from './until.ts';

export async function createVm(cluster: DemoCluster, vm: DemoVm): Promise<Pod> {
  let launcher: Pod | undefined;
  // A watch, because KubeVirt deletes a launcher within milliseconds after the kubelet rejects it.
  const unfollow = cluster.client.follow(PODS, ({ type, object }) => {
    if (type !== 'DELETED' && isLauncherOf(object, vm.name)) launcher ??= object;
  });
  try {
    await cluster.client.create(VIRTUAL_MACHINES, virtualMachine(vm));
    return await until(`the launcher pod of ${vm.name}`, 10, () => launcher);
  } finally {
    unfollow();
  }
}

export function launcherOf(cluster: DemoCluster, vm: string): Pod | undefined {
  return cluster.client.list(PODS).find((pod) => isLauncherOf(pod, vm));
}

function isLauncherOf({ metadata }: Pod, vm: string): boolean {
  return metadata.namespace === DEMO_NAMESPACE && metadata.labels?.['vm.kubevirt.io/name'] === vm;
}

/** Waits until the VM's launcher runs. @throws StepFailed with the reason for the delay */
export async function untilRunning(cluster: DemoCluster, vm: string, seconds: number): Promise<Pod> {
  try {
    return await until(`${vm} to run`, seconds, () => {
      const pod = launcherOf(cluster, vm);
      return pod?.status?.phase === 'Running' ? pod : undefined;
    });
  } catch (error) {
    const messages = eventsOf(cluster, vm).map(({ message }) => message);
    throw new Error(`${(error as Error).message}; last heard: ${messages.at(-1) ?? 'nothing'}`, { cause: error });
  }
}

/** Events of a VM's launchers and instance, oldest first. */
export function eventsOf(cluster: DemoCluster, vm: string): { readonly reason: string; readonly message: string }[] {
  const launcher = launcherOf(cluster, vm)?.metadata.name;
  return cluster.client
    .list(EVENTS)
    .filter((event) => {
      const involved = event['involvedObject'] as { name?: string } | undefined;
      return involved?.name === launcher || involved?.name === vm;
    })
    .map((event) => ({ reason: String(event['reason']), message: String(event['message']) }));
}

export function computeOf(pod: Pod): {
  readonly requests: Record<string, string>;
  readonly limits: Record<string, string>;
} {
  const { requests = {}, limits = {} } = pod.spec.containers.find(({ name }) => name === 'compute')?.resources ?? {};
  return { requests, limits };
}
