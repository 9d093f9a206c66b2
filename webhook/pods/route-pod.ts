import { DECISION_ANNOTATION } from '../../model/names.ts';
import type { Review } from '../admission-review.ts';
import { vmiTarget } from './announce.ts';
import type { Announcements } from './announcements.ts';
import { readPod } from './read-pod.ts';
import { type SchedulerRoute, schedulingFor } from './scheduling.ts';

export interface RoutePodOptions {
  readonly route: SchedulerRoute;
  readonly announcements: Pick<Announcements, 'decided'>;
}

/**
 * Answers reviews of launchers about which nothing else is decided: they are given Plumbline's scheduler, and nothing is
 * ever refused. The API server admits them unchanged while this webhook is away (failurePolicy Ignore).
 */
export function createPodRouting({ route, announcements }: RoutePodOptions): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod' || request.operation !== 'CREATE') return { allowed: true };
    const read = readPod(request);
    if (read.kind !== 'launcher') return { allowed: true };
    const { metadata, spec } = read.pod;
    const { patch, texts } = schedulingFor(spec.schedulerName, route);
    if (request.dryRun !== true && texts.length > 0) {
      announcements.decided(vmiTarget(read.namespace, read.vmi), metadata.annotations?.[DECISION_ANNOTATION], texts);
    }
    return { allowed: true, patch };
  };
}
