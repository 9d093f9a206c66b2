import { type Alignment, type AlignmentRequest, decideAlignment } from '../../../model/admission/launcher-cpus.ts';
import { podResourcesOf } from '../../../model/launcher/containers.ts';
import { COMPUTE, type PodShape } from '../../../model/shapes.ts';

/** The alignment of a launcher, with the gate on, for nodes with two threads per core. */
export function alignmentOf(
  pod: PodShape,
  request: Partial<AlignmentRequest> & Pick<AlignmentRequest, 'vmi'>,
): Alignment {
  return decideAlignment({
    metadata: pod.metadata,
    resources: podResourcesOf(pod),
    compute: pod.spec.containers.findIndex(({ name }) => name === COMPUTE),
    candidates: [2],
    gate: true,
    policy: 'annotated',
    ...request,
  });
}
