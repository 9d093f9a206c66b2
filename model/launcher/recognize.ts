import { alignedCpus } from '../alignment.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../names.ts';
import { NETWORKS_ANNOTATION, parseAttachments, parseRef, refText } from '../networks/attachments.ts';
import { COMPUTE, type PodShape, type VmiShape } from '../shapes.ts';
import { EVEN_PARITY_ANNOTATION, launcherCpus } from './cpus.ts';

const LAUNCHER_LABEL = 'kubevirt.io';
const LAUNCHER = 'virt-launcher';
/** On the launcher of a migration's target, with the uid of the migration; it stays after the migration. */
export const MIGRATION_LABEL = 'kubevirt.io/migrationJobUID';
export const PROVISIONING_ANNOTATION = 'kubevirt.io/ephemeral-provisioning';

/** The caller compares its uid with the uid of the object with that name. */
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
      /** KubeVirt renders these two with the same resources as any other launcher. */
      readonly purpose: 'run' | 'migration-target' | 'provisioning';
    }
  | { readonly kind: 'other'; readonly why: OtherPod };

type OtherPod = 'no-launcher-label' | 'hot-plug' | 'no-vmi-owner' | 'no-compute-container';

/** Anyone can set the label: enough only if a wrong answer harms no one but the pod itself. */
export function isLauncher({ labels }: PodShape['metadata']): boolean {
  return labels?.[LAUNCHER_LABEL] === LAUNCHER;
}

/**
 * By KubeVirt's label, its controller owner and its container. The VMI comes from the owner reference, never from a
 * label: `vm.kubevirt.io/name` is the host name, which users can set.
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

/** The VMI of a launcher as `namespace/name`, for log lines; undefined for another pod. */
export function vmiNameOf(pod: Pick<PodShape, 'metadata' | 'spec'>): string | undefined {
  const recognized = recognizeLauncher(pod);
  return recognized.kind === 'launcher' ? `${pod.metadata.namespace}/${recognized.vmi.name}` : undefined;
}

function purposeOf({ metadata }: Pick<PodShape, 'metadata'>): 'run' | 'migration-target' | 'provisioning' {
  if (metadata.labels?.[MIGRATION_LABEL] !== undefined) return 'migration-target';
  return metadata.annotations?.[PROVISIONING_ANNOTATION] === 'true' ? 'provisioning' : 'run';
}

export const READ_ANNOTATIONS: readonly string[] = [NUMA_AFFINITY_ANNOTATION, EVEN_PARITY_ANNOTATION];

/** Multiples to which a launcher may have been rounded; 1 is for an unpadded one. */
const THREADS_PER_CORE = [1, 2, 4, 8];

/**
 * Whether KubeVirt could have rendered it from this VMI: equal annotations, its CPUs or a padded number, its networks.
 * If not, the cached VMI may be older than the pod. @param cpus of `compute`; undefined: a fraction @throws ParseError
 */
export function fitsLauncher(pod: PodShape, cpus: number | undefined, namespace: string, vmi: VmiShape): boolean {
  for (const name of READ_ANNOTATIONS) {
    if (pod.metadata.annotations?.[name] !== vmi.metadata.annotations?.[name]) return false;
  }
  if (vmi.spec.domain.cpu?.dedicatedCpuPlacement === true) {
    const { total } = launcherCpus(vmi);
    if (!THREADS_PER_CORE.some((threads) => alignedCpus(total, threads) === cpus)) return false;
  }
  const text = pod.metadata.annotations?.[NETWORKS_ANNOTATION];
  if (text === undefined) return true;
  const vmiNetworks = new Set(
    (vmi.spec.networks ?? []).flatMap(({ multus }) =>
      multus ? [refText(parseRef(multus.networkName, namespace))] : [],
    ),
  );
  return parseAttachments(text, namespace).every((attachment) => vmiNetworks.has(refText(attachment)));
}
