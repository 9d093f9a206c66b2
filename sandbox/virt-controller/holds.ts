import type { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../api-server/built-in-types.ts';
import { ApiError } from '../api-server/errors.ts';
import type { LocalClient } from '../clients/local-client.ts';
import type { KubeObject } from '../objects.ts';

type Held = typeof VIRTUAL_MACHINES | typeof VIRTUAL_MACHINE_INSTANCES;

/** KubeVirt's finalizers on its objects. virt-api sets that of an instance when it is created. */
export const FINALIZERS = {
  VirtualMachine: 'kubevirt.io/virtualMachineControllerFinalize',
  VirtualMachineInstance: 'kubevirt.io/foregroundDeleteVirtualMachine',
} as const;

const finalizerOf = ({ kind }: Held) => FINALIZERS[kind as keyof typeof FINALIZERS];

/** Adds the finalizer, which keeps an object until `release`. Resolves to whether it exists and is not being deleted. */
export async function hold(client: LocalClient, type: Held, object: KubeObject): Promise<boolean> {
  const present = await edit(client, type, object, ({ metadata }) => {
    const { deletionTimestamp, finalizers = [] } = metadata;
    // A real API server refuses to add a finalizer to an object that is being deleted.
    if (deletionTimestamp || finalizers.includes(finalizerOf(type))) return;
    metadata.finalizers = [...finalizers, finalizerOf(type)];
  });
  return present !== undefined && !present.metadata.deletionTimestamp;
}

export async function release(client: LocalClient, type: Held, object: KubeObject): Promise<void> {
  await edit(client, type, object, ({ metadata }) => {
    metadata.finalizers = (metadata.finalizers ?? []).filter((name) => name !== finalizerOf(type));
  });
}

async function edit(client: LocalClient, type: Held, object: KubeObject, change: (draft: KubeObject) => void) {
  try {
    return await client.edit<KubeObject>(type, object, change);
  } catch (error) {
    if (error instanceof ApiError && error.http === 404) return undefined;
    throw error;
  }
}
