import { type AdmissionAnswer, type AdmissionRequest, type Review, refused } from '../admission-review.ts';
import { type DecidePodOptions, decidePod } from './decide-pod.ts';
import { patchFor, type RawPod } from './patch.ts';
import { validateResize } from './resize.ts';

/**
 * Answers reviews of pods as they are about to be stored. A new pod is decided about once more, after all other
 * webhooks: what Plumbline would still have to change, somebody took back. And a pod that was aligned is not resized.
 */
export function createPodValidation(options: DecidePodOptions): Review {
  return async (request) => {
    if (request.kind.kind !== 'Pod') return { allowed: true };
    if (request.operation === 'UPDATE' && request.subResource === 'resize') return validateResize(request, options);
    return request.operation === 'CREATE' ? validateNew(request, options) : { allowed: true };
  };
}

async function validateNew(request: AdmissionRequest, options: DecidePodOptions): Promise<AdmissionAnswer> {
  const outcome = await decidePod(request, options);
  // Its warnings were given when the pod was mutated.
  if (outcome.kind === 'answered') return outcome.answer.allowed ? { allowed: true } : outcome.answer;
  const { change, refusals } = outcome.decision;
  const [refusal] = refusals;
  if (refusal !== undefined) return refused(refusal.code, refusal.message);
  const missing = patchFor(request.object as RawPod, { ...change, annotations: {}, nodes: undefined });
  const [first] = missing;
  if (first === undefined) return { allowed: true };
  const where = `${first.path.replaceAll('~1', '/')} should be ${JSON.stringify(first.value)}`;
  return refused(
    422,
    `another webhook has changed what Plumbline decided: ${where}; try again, or have it run earlier`,
  );
}
