import { EVENTS, PODS, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import type { Sandbox } from '../../sandbox/cluster.ts';
import type { KubeObject, Pod } from '../../sandbox/objects.ts';
import { DEMO_NAMESPACE, type DemoVm, virtualMachine } from './objects.ts';
import { until } from './until.ts';

/** Creates a VM and waits for the launcher pod that KubeVirt makes of it. */
export async function createVm(sandbox: Sandbox, vm: DemoVm): Promise<Pod> {
  await sandbox.client.create(VIRTUAL_MACHINES, virtualMachine(vm));
  return until(`the launcher pod of ${vm.name}`, 10, () => launcherOf(sandbox, vm.name));
}

export function launcherOf(sandbox: Sandbox, vm: string): Pod | undefined {
  return sandbox.client
    .list(PODS)
    .find(({ metadata }) => metadata.namespace === DEMO_NAMESPACE && metadata.labels?.['vm.kubevirt.io/name'] === vm);
}

/** Waits until the VM's launcher runs. @throws StepFailed with what holds it up */
export async function untilRunning(sandbox: Sandbox, vm: string, seconds: number): Promise<Pod> {
  try {
    return await until(`${vm} to run`, seconds, () => {
      const pod = launcherOf(sandbox, vm);
      return pod?.status?.phase === 'Running' ? pod : undefined;
    });
  } catch (error) {
    const messages = eventsOf(sandbox, vm).map(({ message }) => message);
    throw new Error(`${(error as Error).message}; last heard: ${messages.at(-1) ?? 'nothing'}`, { cause: error });
  }
}

/** What happened to a VM's launcher and instance, oldest first. */
export function eventsOf(sandbox: Sandbox, vm: string): { readonly reason: string; readonly message: string }[] {
  const launcher = launcherOf(sandbox, vm)?.metadata.name;
  return sandbox.client
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

export function annotationOf({ metadata }: KubeObject, name: string): string | undefined {
  return metadata.annotations?.[name];
}
