import type { KubeClient } from '../../../kube/client.ts';
import type { CreatedPod, CreatedVmi, LauncherOptions, VmiOptions } from './objects-fixture.ts';
import { launcherFor, virtualMachineInstance } from './objects-fixture.ts';

interface NewPod {
  readonly metadata: { readonly namespace?: string | undefined; readonly [key: string]: unknown };
  readonly [key: string]: unknown;
}

/** Actions of tests on a cluster with the webhook. */
export type Scene = ReturnType<typeof sceneOf>;

export function sceneOf(client: KubeClient) {
  /** Creates a VMI; an existing name gives the existing one. */
  const vmi = async (name: string, options: VmiOptions = {}): Promise<CreatedVmi> => {
    const object = virtualMachineInstance(name, options);
    const path = `/apis/kubevirt.io/v1/namespaces/${object.metadata.namespace}/virtualmachineinstances`;
    await client.create(path, object).catch((error: { reason?: string }) => {
      if (error.reason !== 'AlreadyExists') throw error;
    });
    return (await client.get(`${path}/${name}`)) as CreatedVmi;
  };
  const admit = async (pod: NewPod, query: Record<string, string> = {}) =>
    (await client.create(`/api/v1/namespaces/${pod.metadata.namespace}/pods`, pod, { query })) as CreatedPod;
  return {
    vmi,
    admit,
    /** A VMI and its launcher as admitted. */
    launcher: async (name: string, { vmi: options = {}, ...launcher }: LauncherOptions & { vmi?: VmiOptions }) =>
      admit(launcherFor(await vmi(name, options), launcher)),
  };
}

/** CPUs of the containers, in their order. */
export function cpusOf({ spec }: CreatedPod): (string | undefined)[] {
  return spec.containers.map(({ resources }) => resources.limits?.['cpu']);
}

/** Plumbline's own resources of compute, with equal requests and limits. */
export function devicesOf({ spec }: CreatedPod): string[] {
  const { requests, limits } = spec.containers.find(({ name }) => name === 'compute')?.resources ?? {};
  return Object.keys(limits ?? {})
    .filter((name) => name.includes('plumbline.dev/') && limits?.[name] === '1' && requests?.[name] === '1')
    .map((name) => name.replace('physnet.plumbline.dev/', ''))
    .sort();
}
