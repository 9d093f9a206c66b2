import type { EventRecorder } from '../../kube/events.ts';
import { type Review, refused } from '../admission-review.ts';
import { announceDecision, announceRefusal } from './announce.ts';
import { type DecidePodOptions, decidePod } from './decide-pod.ts';
import { patchFor, type RawPod } from './patch.ts';

export interface MutatePodOptions extends DecidePodOptions {
  readonly events: EventRecorder;
}

/** Answers reviews of new pods with what is to be changed. A dry run writes no Event. */
export function createPodMutation(options: MutatePodOptions): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod' || request.operation !== 'CREATE') return { allowed: true };
    const { target, ...outcome } = await decidePod(request, options);
    const tell = request.dryRun === true ? undefined : target;
    if (outcome.kind === 'answered') {
      if (tell !== undefined && !outcome.answer.allowed) announceRefusal(options.events, tell, outcome.answer.message);
      return outcome.answer;
    }
    const { decision } = outcome;
    if (tell !== undefined) announceDecision(options.events, tell, decision);
    const [refusal] = decision.refusals;
    const warnings = [...decision.warnings, ...decision.notes.map(({ message }) => message)];
    if (refusal !== undefined) return refused(refusal.code, refusal.message, warnings);
    return { allowed: true, patch: patchFor(request.object as RawPod, decision.change), warnings };
  };
}
