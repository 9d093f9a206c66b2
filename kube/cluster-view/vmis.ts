import type { ConditionShape, PodShape } from '../../model/shapes.ts';

const API = '/apis/kubevirt.io/v1';

/** The path of a collection. @param namespace undefined: all */
const pathOf = (plural: string) => (namespace?: string) =>
  namespace === undefined ? `${API}/${plural}` : `${API}/namespaces/${encodeURIComponent(namespace)}/${plural}`;

export const instancesPath = pathOf('virtualmachineinstances');
export const machinesPath = pathOf('virtualmachines');
export const migrationsPath = pathOf('virtualmachineinstancemigrations');

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
