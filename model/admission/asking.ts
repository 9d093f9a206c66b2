import { EVEN_PARITY_ANNOTATION } from '../launcher/cpus.ts';
import type { MetaShape } from '../launcher/shapes.ts';
import { CPU_MASK_ANNOTATION, FULL_PCPUS_ANNOTATION, NUMA_AFFINITY_ANNOTATION } from '../names.ts';
import { NETWORKS_ANNOTATION } from '../networks/attachments.ts';

/**
 * Without any of these a launcher is aligned only if all are, has no network that it is held to, and no mask. The webhook
 * configurations name them too, so that no other launcher waits for this webhook.
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
