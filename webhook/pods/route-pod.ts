import { schedulingOf } from '../../model/admission/scheduling.ts';
import type { Review } from '../review/admission-review.ts';
import { readPod, type SchedulerRoute, schedulerFacts } from './gather.ts';
import { patchFor, type RawPod } from './patch.ts';

/**
 * Reviews launchers without any other decision: they get Plumbline's scheduler and are never refused. The API server
 * admits them unchanged while this webhook is down (failurePolicy Ignore).
 */
export function createPodRouting(route: SchedulerRoute): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod' || request.operation !== 'CREATE') return { allowed: true };
    const read = readPod(request);
    if (read.kind !== 'launcher') return { allowed: true };
    const { set: scheduler, findings } = schedulingOf(read.pod.spec.schedulerName, schedulerFacts(route));
    const change = { containers: [], annotations: {}, nodes: undefined, scheduler };
    const patch = patchFor(request.object as RawPod, change);
    return { allowed: true, patch, warnings: findings.map(({ message }) => message) };
  };
}
