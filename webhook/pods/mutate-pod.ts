import type { EventTarget, EventText } from '../../kube/events.ts';
import { DECISION_ANNOTATION } from '../../model/names.ts';
import { type Review, refused } from '../admission-review.ts';
import { refusalText, textsOf } from './announce.ts';
import type { Announcements } from './announcements.ts';
import { type DecidePodOptions, decidePod } from './decide-pod.ts';
import type { PodDecision } from './decision.ts';
import { patchFor, type RawPod } from './patch.ts';
import { type SchedulerRoute, schedulingFor } from './scheduling.ts';

export interface MutatePodOptions extends DecidePodOptions {
  readonly route: SchedulerRoute;
  readonly announcements: Pick<Announcements, 'decided' | 'refused'>;
}

/** Answers reviews of new pods with what is to be changed. A dry run writes no Event. */
export function createPodMutation(options: MutatePodOptions): Review {
  const { announcements, route } = options;
  return async (request) => {
    if (request.kind.kind !== 'Pod' || request.operation !== 'CREATE') return { allowed: true };
    const { target, ...outcome } = await decidePod(request, options);
    const tell = request.dryRun === true ? undefined : target;
    if (outcome.kind === 'answered') {
      if (tell !== undefined && !outcome.answer.allowed) {
        announcements.refused(tell, refusalText(outcome.answer.message));
      }
      return outcome.answer;
    }
    const { decision } = outcome;
    const raw = request.object as RawPod;
    const scheduling = schedulingFor(raw.spec['schedulerName'] as string | undefined, route);
    if (tell !== undefined) announce(announcements, tell, decision, scheduling.texts);
    const [refusal] = decision.refusals;
    const warnings = [...decision.warnings, ...[...decision.notes, ...scheduling.texts].map(({ message }) => message)];
    if (refusal !== undefined) return refused(refusal.code, refusal.message, warnings);
    return { allowed: true, patch: [...patchFor(raw, decision.change), ...scheduling.patch], warnings };
  };
}

function announce(
  announcements: MutatePodOptions['announcements'],
  target: EventTarget,
  decision: PodDecision,
  scheduling: readonly EventText[],
): void {
  const { change, refusals } = decision;
  announcements.decided(target, change.annotations[DECISION_ANNOTATION], [...textsOf(decision), ...scheduling]);
  for (const { message } of refusals) announcements.refused(target, refusalText(message));
}
