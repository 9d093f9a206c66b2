import { startingInstance } from '../../kube/virtual-machines.ts';
import { issuesText, PlumblineError } from '../../model/errors.ts';
import { formatPausedStart, pausesAtStart } from '../../model/launcher/paused-start.ts';
import { PAUSED_START_ANNOTATION } from '../../model/names.ts';
import { type PatchOperation, type Review, refused } from '../review/admission-review.ts';

const ANNOTATION_PATH = `/metadata/annotations/${PAUSED_START_ANNOTATION.replaceAll('/', '~1')}`;

/**
 * Makes new VMIs with a CPU mask start paused and records that; removes a record that a client wrote. Called once for
 * each VMI: a second call could not tell its own pause from a user's.
 */
export function createVmiMutation(): Review {
  return async (request) => {
    if (request.kind.kind !== 'VirtualMachineInstance' || request.operation !== 'CREATE') return { allowed: true };
    const { data: vmi, error: fault } = startingInstance.safeParse(request.object);
    if (fault) return refused(400, `plumbline cannot read this VirtualMachineInstance: ${issuesText(fault)}`);
    try {
      return { allowed: true, patch: patchFor(vmi.metadata.annotations, pausesAtStart(vmi)) };
    } catch (error) {
      if (error instanceof PlumblineError) return refused(422, error.message);
      throw error;
    }
  };
}

function patchFor(annotations: Readonly<Record<string, string>> | undefined, pauses: boolean): PatchOperation[] {
  const recorded = annotations?.[PAUSED_START_ANNOTATION] !== undefined;
  if (!pauses) return recorded ? [{ op: 'remove', path: ANNOTATION_PATH }] : [];
  // The mask is an annotation, so the object has annotations.
  return [
    { op: 'add', path: '/spec/startStrategy', value: 'Paused' },
    { op: 'add', path: ANNOTATION_PATH, value: formatPausedStart({ state: 'waiting' }) },
  ];
}
