import { briefMask } from '../../model/cpu-mask/mask.ts';
import { startsRunning } from '../../model/launcher/paused-start.ts';
import { CPU_MASK_START_ANNOTATION, DECISION_ANNOTATION } from '../../model/names.ts';
import type { PlacementNeeds } from '../../model/placement/needs.ts';
import { placementNeedsOf } from '../../model/placement/pod-needs.ts';
import type { ExplainedPod } from './objects.ts';

/** What a pod asks for, with what Plumbline's webhook made of it. */
export interface Asks {
  /** In words. */
  readonly text: readonly string[];
  /** Containers with CPUs of their own. */
  readonly containers: readonly { readonly name: string; readonly cpus: number }[];
  /** CPUs of these that fill whole cores. */
  readonly padding: number;
  readonly wholeCores: boolean;
  readonly mask?: string | undefined;
  readonly networks: readonly Pick<PlacementNeeds['networks'][number], 'kind' | 'physnet' | 'affinity'>[];
}

export function asksOf(pod: ExplainedPod): Asks {
  const { request, mask, networks, wholeCores = false } = placementNeedsOf(pod);
  const containers = request.containers.filter(({ cpus }) => cpus > 0).map(({ name, cpus }) => ({ name, cpus }));
  const padding = paddingOf(pod);
  const owned = containers.map(({ name, cpus }) => `${cpus} CPUs of its own for ${name}`).join(', ');
  const text = [containers.length === 0 ? 'no CPUs of its own' : owned];
  if (padding > 0) text[0] += ` (${padding} of them to fill whole cores)`;
  if (wholeCores) text.push('whole cores');
  if (mask) {
    const otherwise = mask.fixMismatch ? ', or all CPUs of a node that lacks some' : '';
    const late = startsRunning(pod.metadata) ? `, set once it runs (${CPU_MASK_START_ANNOTATION}: running)` : '';
    text.push(`the CPU mask ${briefMask(mask.mask)}${otherwise}${late}`);
  }
  for (const { kind, physnet, affinity } of networks) {
    text.push(`CPUs near ${kind === 'tunnel' ? 'the tunnel' : `physnet ${physnet}`} (${affinity})`);
  }
  return {
    text,
    containers,
    padding,
    wholeCores,
    mask: mask && briefMask(mask.mask),
    networks: networks.map(({ kind, physnet, affinity }) => ({ kind, physnet, affinity })),
  };
}

function paddingOf({ metadata }: ExplainedPod): number {
  try {
    const decision = JSON.parse(metadata.annotations?.[DECISION_ANNOTATION] ?? '{}') as { padding?: unknown };
    return typeof decision.padding === 'number' ? decision.padding : 0;
  } catch {
    return 0;
  }
}
