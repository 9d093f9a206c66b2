import { type AdmissionAnswer, refused } from '../../model/admission/answer.ts';
import { decide } from '../../model/admission/decide.ts';
import type { Decision } from '../../model/admission/decision.ts';
import { eventOf, eventsOf } from '../../model/admission/events.ts';
import type { PodFacts } from '../../model/admission/facts.ts';
import { vmiObject } from '../../model/launcher/recognize.ts';
import type { AdmissionRequest, Review } from '../review/admission-review.ts';
import type { Announcements } from './announcements.ts';
import { type GatherOptions, gather } from './gather.ts';
import { patchFor, type RawPod } from './patch.ts';

export interface MutatePodOptions extends GatherOptions {
  readonly announcements: Pick<Announcements, 'decided' | 'refused'>;
}

/** Reviews new pods and returns the patch to apply. A dry run writes no Event. */
export function createPodMutation(options: MutatePodOptions): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod' || request.operation !== 'CREATE') return { allowed: true };
    const facts = await gather(request, options);
    const decision = decide(facts);
    const answer = answerTo(request, decision);
    if (request.dryRun !== true) announce(options.announcements, facts, decision);
    return answer;
  };
}

function answerTo({ object }: AdmissionRequest, decision: Decision): AdmissionAnswer {
  const warnings = decision.findings.filter(({ severity }) => severity !== 'error').map(({ message }) => message);
  switch (decision.outcome) {
    case 'refused':
      return refused(decision.code, decision.reason, warnings);
    case 'changed':
      return { allowed: true, patch: patchFor(object as RawPod, decision.changes), warnings };
    case 'unchanged':
      return { allowed: true, ...(warnings.length === 0 ? {} : { warnings }) };
  }
}

/** Writes Events on the VMI if the pod is a launcher, but not if the VMI is gone. */
function announce(announcements: MutatePodOptions['announcements'], facts: PodFacts, decision: Decision): void {
  if (facts.kind !== 'launcher' || decision.outcome === 'unchanged') return;
  const target = vmiObject(facts.namespace, facts.vmi);
  announcements.decided(target, decision.text, eventsOf(decision));
  for (const one of decision.findings) if (one.severity === 'error') announcements.refused(target, eventOf(one));
}
