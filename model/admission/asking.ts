import { EVEN_PARITY_ANNOTATION } from '../launcher/cpus.ts';
import type { MetaShape } from '../launcher/shapes.ts';
import { CPU_MASK_ANNOTATION, FULL_PCPUS_ANNOTATION, NUMA_AFFINITY_ANNOTATION } from '../names.ts';
import { NETWORKS_ANNOTATION } from '../networks/attachments.ts';

/**
 * The annotations that opt in. A launcher without any of them changes only if the policy aligns all launchers, if it
 * has a required network or if it has a mask. The webhook configurations list the same names, so that no other launcher
 * waits for this webhook.
 */
export const ASKING: readonly string[] = [
  FULL_PCPUS_ANNOTATION,
  EVEN_PARITY_ANNOTATION,
  CPU_MASK_ANNOTATION,
  NETWORKS_ANNOTATION,
  NUMA_AFFINITY_ANNOTATION,
];

/** Whether a launcher, or the template it is rendered from, has one of these annotations. */
export function hasAsked({ annotations }: Pick<MetaShape, 'annotations'>): boolean {
  return ASKING.some((name) => annotations?.[name] !== undefined);
}
