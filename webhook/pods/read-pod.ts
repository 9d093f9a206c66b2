import type * as z from 'zod';
import { pod as podSchema, tolerations } from '../../kube/resources.ts';
import { asksForAlignment } from '../../model/launcher/ordinary.ts';
import { recognizeLauncher, type VmiReference } from '../../model/launcher/recognize.ts';
import { type AdmissionRequest, issuesText, type RefusedAnswer, refused } from '../admission-review.ts';

/** A pod with what kube-scheduler will choose its nodes by. */
const admittedPod = podSchema.extend({ spec: podSchema.shape.spec.extend({ tolerations }) });
export type AdmittedPod = z.infer<typeof admittedPod>;

/** A pod under review, by what it is to Plumbline. */
export type ReadPod =
  | {
      readonly kind: 'launcher';
      readonly pod: AdmittedPod;
      readonly namespace: string;
      readonly vmi: VmiReference;
      /** Index of `compute` in spec.containers. */
      readonly compute: number;
    }
  /** Asks for whole cores by annotation. */
  | { readonly kind: 'ordinary'; readonly pod: AdmittedPod; readonly namespace: string }
  | { readonly kind: 'other'; readonly pod: AdmittedPod }
  | { readonly kind: 'unreadable'; readonly answer: RefusedAnswer };

export function readPod({ object, namespace: inNamespace }: AdmissionRequest): ReadPod {
  const parsed = admittedPod.safeParse(object);
  if (!parsed.success)
    return { kind: 'unreadable', answer: refused(400, `this is no Pod: ${issuesText(parsed.error)}`) };
  const pod = parsed.data;
  const namespace = inNamespace ?? pod.metadata.namespace ?? 'default';
  const found = recognizeLauncher(pod);
  if (found.kind === 'launcher') return { ...found, pod, namespace };
  return asksForAlignment(pod.metadata) ? { kind: 'ordinary', pod, namespace } : { kind: 'other', pod };
}
