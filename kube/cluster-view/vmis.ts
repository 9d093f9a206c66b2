import type { ConditionShape, PodShape } from '../../model/shapes.ts';

const API = '/apis/kubevirt.io/v1';

/** @param namespace undefined: all */
function collectionOf(plural: string, namespace: string | undefined): string {
  return namespace === undefined ? `${API}/${plural}` : `${API}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

export const instancesPath = (namespace?: string): string => collectionOf('virtualmachineinstances', namespace);
export const machinesPath = (namespace?: string): string => collectionOf('virtualmachines', namespace);
export const migrationsPath = (namespace?: string): string =>
  collectionOf('virtualmachineinstancemigrations', namespace);

interface WatchedInstance {
  readonly status?: { readonly conditions?: readonly ConditionShape[] | null | undefined } | null | undefined;
}

/** The condition of an instance whose guest is paused. */
export function pausedCondition({ status }: WatchedInstance): ConditionShape | undefined {
  return status?.conditions?.find((condition) => condition.type === 'Paused' && condition.status === 'True');
}

/** Whether a VM created the instance, which continues to exist when it is stopped. */
export function isOfMachine({ ownerReferences }: Pick<PodShape['metadata'], 'ownerReferences'>): boolean {
  return ownerReferences?.some(({ kind }) => kind === 'VirtualMachine') ?? false;
}
