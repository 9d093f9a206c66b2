import { briefMask } from '../../model/cpu-mask/mask.ts';
import { startsRunning } from '../../model/launcher/paused-start.ts';
import { CPU_MASK_START_ANNOTATION, DECISION_ANNOTATION } from '../../model/names.ts';
import { placementNeedsOf } from '../../model/placement/pod-needs.ts';
import type { ExplainedPod } from './objects.ts';

/** What a pod asks for, in words, with what Plumbline's webhook made of it. */
export function asksOf(pod: ExplainedPod): string[] {
  const { request, mask, networks, wholeCores } = placementNeedsOf(pod);
  const cpus = request.containers.filter((one) => one.cpus > 0);
  const padding = paddingOf(pod);
  const owned = cpus.map(({ name, cpus: count }) => `${count} CPUs of its own for ${name}`).join(', ');
  const asks = [cpus.length === 0 ? 'no CPUs of its own' : owned];
  if (padding > 0) asks[0] += ` (${padding} of them to fill whole cores)`;
  if (wholeCores) asks.push('whole cores');
  if (mask) {
    const otherwise = mask.fixMismatch ? ', or all CPUs of a node that lacks some' : '';
    const late = startsRunning(pod.metadata) ? `, set once it runs (${CPU_MASK_START_ANNOTATION}: running)` : '';
    asks.push(`the CPU mask ${briefMask(mask.mask)}${otherwise}${late}`);
  }
  for (const { kind, physnet, affinity } of networks) {
    asks.push(`CPUs near ${kind === 'tunnel' ? 'the tunnel' : `physnet ${physnet}`} (${affinity})`);
  }
  return asks;
}

function paddingOf({ metadata }: ExplainedPod): number {
  try {
    const decision = JSON.parse(metadata.annotations?.[DECISION_ANNOTATION] ?? '{}') as { padding?: unknown };
    return typeof decision.padding === 'number' ? decision.padding : 0;
  } catch {
    return 0;
  }
}
