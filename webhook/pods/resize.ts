import type { Pod } from '../../kube/resources.ts';
import { pod as podSchema } from '../../kube/resources.ts';
import { PlumblineError } from '../../model/errors.ts';
import { wantsWholeCores } from '../../model/launcher/annotation.ts';
import { integralContainers, qosObstacles } from '../../model/launcher/containers.ts';
import { asksForAlignment } from '../../model/launcher/ordinary.ts';
import { recognizeLauncher } from '../../model/launcher/recognize.ts';
import { type AdmissionAnswer, type AdmissionRequest, issuesText, refused } from '../admission-review.ts';
import type { DecideOptions } from './launcher.ts';

/**
 * Answers pods/resize. The kubelet's static policy cannot resize a pod with exclusive CPUs in place, and nobody rounds
 * the new amount to whole cores: such a pod is to be made anew.
 */
export function validateResize(
  { object, oldObject }: AdmissionRequest,
  { gate, policy }: Pick<DecideOptions, 'gate' | 'policy'>,
): AdmissionAnswer {
  const [after, before] = [podSchema.safeParse(object), podSchema.safeParse(oldObject)];
  if (!after.success) return refused(400, `this is no Pod: ${issuesText(after.error)}`);
  if (!before.success) return refused(400, `the old object is no Pod: ${issuesText(before.error)}`);
  try {
    if (!isAligned(before.data, gate, policy !== 'annotated')) return { allowed: true };
  } catch (error) {
    if (error instanceof PlumblineError) return refused(400, error.message);
    throw error;
  }
  if (amounts(before.data) === amounts(after.data)) return { allowed: true };
  const what =
    recognizeLauncher(before.data).kind === 'launcher' ? 'change the VM and restart or migrate it' : 'create it anew';
  return refused(422, `this pod has whole cores, which cannot be resized in place: ${what}`);
}

function isAligned(pod: Pod, gate: boolean, everyLauncher: boolean): boolean {
  const launcher =
    recognizeLauncher(pod).kind === 'launcher' && gate && (everyLauncher || wantsWholeCores(pod.metadata));
  if (!launcher && !asksForAlignment(pod.metadata)) return false;
  return qosObstacles(pod).length === 0 && integralContainers(pod).length > 0;
}

function amounts({ spec }: Pod): string {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  return JSON.stringify(containers.map(({ name, resources }) => [name, resources?.requests, resources?.limits]));
}
