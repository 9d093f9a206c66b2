import { pod as podSchema } from '../../kube/resources.ts';
import { type AdmissionAnswer, refused } from '../../model/admission/answer.ts';
import { decide } from '../../model/admission/decide.ts';
import type { Settings } from '../../model/admission/facts.ts';
import { resizeRefusal } from '../../model/admission/resize.ts';
import { issuesText } from '../../model/brief.ts';
import { PlumblineError } from '../../model/errors.ts';
import type { AdmissionRequest, Review } from '../review/admission-review.ts';
import { type GatherOptions, gather } from './gather.ts';
import { patchFor, type RawPod } from './patch.ts';

/**
 * Reviews pods before they are stored. A new pod is decided about again, after all mutating webhooks: any change that
 * Plumbline would still make was reverted by another webhook. An aligned pod cannot be resized.
 */
export function createPodValidation(options: GatherOptions): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod') return { allowed: true };
    if (request.operation === 'UPDATE' && request.subResource === 'resize') return validateResize(request, options);
    return request.operation === 'CREATE' ? validateNew(request, options) : { allowed: true };
  };
}

/** Returns no warnings, because the mutation of the pod already did. */
async function validateNew(request: AdmissionRequest, options: GatherOptions): Promise<AdmissionAnswer> {
  const decision = decide(await gather(request, options));
  if (decision.outcome === 'refused') return refused(decision.code, decision.reason);
  if (decision.outcome === 'unchanged') return { allowed: true };
  const { containers } = decision.changes;
  const [first] = patchFor(request.object as RawPod, { containers, annotations: {}, nodes: undefined });
  if (first === undefined) return { allowed: true };
  const where = `${first.path.replaceAll('~1', '/')} should be ${JSON.stringify(first.value)}`;
  return refused(422, `another webhook changed Plumbline’s decision: ${where}; retry, or configure it to run earlier`);
}

function validateResize(
  { object, oldObject }: AdmissionRequest,
  settings: Pick<Settings, 'gate' | 'policy'>,
): AdmissionAnswer {
  const [after, before] = [podSchema.safeParse(object), podSchema.safeParse(oldObject)];
  const fault = after.error ?? before.error;
  if (fault !== undefined)
    return refused(400, `the ${after.success ? 'old' : 'new'} object is not a Pod: ${issuesText(fault)}`);
  try {
    const refusal = resizeRefusal(before.data!, after.data!, settings);
    return refusal === undefined ? { allowed: true } : refused(422, refusal);
  } catch (error) {
    if (error instanceof PlumblineError) return refused(400, error.message);
    throw error;
  }
}
