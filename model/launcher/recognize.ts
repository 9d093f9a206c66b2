import { COMPUTE, type PodShape } from '../shapes.ts';

const LAUNCHER_LABEL = 'kubevirt.io';
const LAUNCHER = 'virt-launcher';
const MIGRATION_LABEL = 'kubevirt.io/migrationJobUID';
export const PROVISIONING_ANNOTATION = 'kubevirt.io/ephemeral-provisioning';

/** The VMI of a launcher. The caller compares its uid with the uid of the object with that name. */
export interface VmiReference {
  readonly name: string;
  readonly uid: string;
}

/** A VMI as the target of an Event. */
export function vmiObject(namespace: string, { name, uid }: VmiReference) {
  return { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', namespace, name, uid };
}

export type Recognition =
  | {
      readonly kind: 'launcher';
      readonly vmi: VmiReference;
      /** Index of `compute` in spec.containers: KubeVirt puts it first, but injectors may insert others before it. */
      readonly compute: number;
      /** KubeVirt renders these two with the same resources as any other launcher. They only name the pod's purpose. */
      readonly purpose: 'run' | 'migration-target' | 'provisioning';
    }
  | { readonly kind: 'other'; readonly why: OtherPod };

type OtherPod = 'no-launcher-label' | 'hot-plug' | 'no-vmi-owner' | 'no-compute-container';

/**
 * Whether a pod has the label of a virt-launcher. Anyone can set the label, so this is enough only if a wrong answer
 * harms no one but the pod itself.
 */
export function isLauncher({ labels }: PodShape['metadata']): boolean {
  return labels?.[LAUNCHER_LABEL] === LAUNCHER;
}

/**
 * Whether a pod is a virt-launcher, by KubeVirt's label, its controller owner and its container. The VMI comes from the
 * owner reference and never from a label: `vm.kubevirt.io/name` is the host name, which users can set.
 */
export function recognizeLauncher(pod: Pick<PodShape, 'metadata' | 'spec'>): Recognition {
  const label = pod.metadata.labels?.[LAUNCHER_LABEL];
  if (label === 'hotplug-disk') return { kind: 'other', why: 'hot-plug' };
  if (label !== LAUNCHER) return { kind: 'other', why: 'no-launcher-label' };
  const owner = pod.metadata.ownerReferences?.find((reference) => reference.controller === true);
  if (owner?.kind !== 'VirtualMachineInstance' || !owner.apiVersion.startsWith('kubevirt.io/')) {
    return { kind: 'other', why: 'no-vmi-owner' };
  }
  const compute = pod.spec.containers.findIndex((container) => container.name === COMPUTE);
  if (compute < 0) return { kind: 'other', why: 'no-compute-container' };
  return { kind: 'launcher', vmi: { name: owner.name, uid: owner.uid }, compute, purpose: purposeOf(pod) };
}

function purposeOf({ metadata }: Pick<PodShape, 'metadata'>): 'run' | 'migration-target' | 'provisioning' {
  if (metadata.labels?.[MIGRATION_LABEL] !== undefined) return 'migration-target';
  return metadata.annotations?.[PROVISIONING_ANNOTATION] === 'true' ? 'provisioning' : 'run';
}
