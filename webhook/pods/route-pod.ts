import { eventOf } from '../../model/admission/events.ts';
import { schedulingOf } from '../../model/admission/scheduling.ts';
import { vmiObject } from '../../model/launcher/recognize.ts';
import { DECISION_ANNOTATION } from '../../model/names.ts';
import type { Review } from '../review/admission-review.ts';
import type { Announcements } from './announcements.ts';
import { readPod, type SchedulerRoute, schedulerFacts } from './gather.ts';
import { patchFor, type RawPod } from './patch.ts';

export interface RoutePodOptions {
  readonly route: SchedulerRoute;
  readonly announcements: Pick<Announcements, 'decided'>;
}

/**
 * Reviews launchers without any other decision: they get Plumbline's scheduler and are never refused. The API server
 * admits them unchanged while this webhook is down (failurePolicy Ignore).
 */
export function createPodRouting({ route, announcements }: RoutePodOptions): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod' || request.operation !== 'CREATE') return { allowed: true };
    const read = readPod(request);
    if (read.kind !== 'launcher') return { allowed: true };
    const { metadata, spec } = read.pod;
    const { set: scheduler, findings } = schedulingOf(spec.schedulerName, schedulerFacts(route));
    if (request.dryRun !== true && findings.length > 0) {
      const target = vmiObject(read.namespace, read.vmi);
      announcements.decided(target, metadata.annotations?.[DECISION_ANNOTATION], findings.map(eventOf));
    }
    const change = { containers: [], annotations: {}, nodes: undefined, scheduler };
    return { allowed: true, patch: patchFor(request.object as RawPod, change) };
  };
}
