import type { Kubelet } from '../kubelet/kubelet.ts';
import type { KubeletState } from '../kubelet/state.ts';
import { pagesText, takenPagesText } from '../kubelet/usage.ts';
import { bytesText } from '../quantity.ts';
import type { PlacementNeeds } from './needs.ts';
import { type Refusal, refusal } from './refusal.ts';

/**
 * The static memory manager counts what containers have reserved, and the kernel what is used. A process that took pages
 * without a reservation leaves the pod without some that the kubelet promises it.
 * @param before the state in which the kubelet admits the pod, and after it
 */
export function missingPages({ topology }: Kubelet, before: KubeletState, after: KubeletState): Refusal | undefined {
  const texts: string[] = [];
  for (const [bit, { unaccounted = new Map(), tables }] of (after.memory?.cells ?? []).entries()) {
    for (const [type, bytes] of unaccounted) {
      const left = tables.get(type)?.free ?? 0;
      const isUsed = left < (before.memory?.cells[bit]?.tables.get(type)?.free ?? 0);
      if (isUsed && left < bytes) texts.push(`${pagesText(type, bytes)} on NUMA node ${topology.numaIds[bit]}`);
    }
  }
  if (texts.length === 0) return undefined;
  return refusal('pages-taken', takenPagesText(texts));
}

/** The same for a node whose kubelet counts no pages: what the pods need together must be free by the kernel. */
export function missingPagesOfNode(
  { freePages }: KubeletState,
  pods: readonly Pick<PlacementNeeds, 'request'>[],
): Refusal | undefined {
  for (const [type, free] of freePages ?? []) {
    const containers = pods.flatMap(({ request }) => request.containers.filter(({ kind }) => kind !== 'init'));
    const needed = containers.reduce((sum, { memory }) => sum + (memory.get(type) ?? 0), 0);
    if (needed <= free) continue;
    return refusal(
      'pages-taken',
      `${pagesText(type, free)} are free by the kernel, and ${bytesText(needed)} are needed`,
    );
  }
  return undefined;
}
