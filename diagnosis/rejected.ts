import { wantsWholeCores } from '../model/launcher/annotation.ts';
import type { PodShape } from '../model/shapes.ts';
import { type Cause, type RejectionFacts, type VmFacts, whileOff } from './facts.ts';
import { addAnnotation, plumbline, readEvents, remedy, startAgain } from './remedies.ts';

const IF_AGAIN =
  'another pod got its CPUs first, and it is retried; if this happens again, look for a second scheduler';

type CauseWithoutText = Omit<Cause, 'text'>;

function causeOfRejection(
  { reason, message }: Pick<RejectionFacts, 'reason' | 'message'>,
  annotations: VmFacts['annotations'],
  facts: VmFacts,
): CauseWithoutText | undefined {
  const raceCause = (of: 'CoresTaken' | 'AdmissionRejected'): CauseWithoutText => ({
    reason: of,
    remedies: [remedy('wait', IF_AGAIN, plumbline('doctor', 'extender'))],
  });
  switch (reason) {
    case 'SMTAlignmentError':
      if (message.includes('not enough free physical CPUs')) return raceCause('CoresTaken');
      if (!wantsWholeCores({ annotations }))
        return { reason: 'UnalignedRejected', remedies: [addAnnotation('opt in to whole cores', facts)] };
      return {
        reason: 'UnpaddedRejected',
        remedies: [startAgain(facts, 'start the VM again once the webhook works', plumbline('doctor', 'webhook'))],
      };
    case 'TopologyAffinityError':
      return {
        reason: 'TopologyRejected',
        remedies: [
          remedy(
            'check-extender',
            'no NUMA nodes have all requested resources: find nodes with free CPUs, and check that its scheduler calls the extender',
            plumbline('top'),
            plumbline('doctor', 'extender'),
          ),
        ],
      };
    case 'UnexpectedAdmissionError':
      return raceCause('AdmissionRejected');
    default:
      return undefined;
  }
}

const of = (node: string | undefined) => (node ? ` of ${node}` : '');

/** KubeVirt deletes a rejected VMI with its launcher and starts another one, so only the Event is left. */
export function rejectedBefore(facts: VmFacts): Cause | undefined {
  const { rejection, machine, annotations } = facts;
  const cause = rejection && causeOfRejection(rejection, annotations, facts);
  if (rejection === undefined || cause === undefined) return undefined;
  const { failures = 0, retryIn = 0 } = machine ?? {};
  const next = retryIn > 0 ? `, and starts another in ${Math.ceil(retryIn)} s` : ', and starts another';
  const times = failures > 1 ? ` (${failures} times in a row)` : '';
  const { reason, message } = rejection;
  const why = `the kubelet${of(rejection.node)} rejected its launcher (${reason}): ${message}`;
  const off = cause.reason === 'UnpaddedRejected' ? whileOff(facts) : '';
  return { ...cause, text: `${why}${off}; KubeVirt has deleted it${times}${next}` };
}

export function failedPod(facts: VmFacts, pod: PodShape): Cause {
  const { reason = '', message = '' } = pod.status ?? {};
  const where = of(pod.spec.nodeName);
  const cause = causeOfRejection({ reason, message }, pod.metadata.annotations, facts);
  if (cause) return { ...cause, text: `the kubelet${where} rejected it (${reason}): ${message}` };
  const name = pod.metadata.name ?? facts.name;
  const evicted = facts.events?.evicted;
  if (evicted !== undefined) {
    const text = 'its owner creates another pod, which goes to another node: check that pod';
    return {
      reason: 'EvictedBeforeStart',
      text: `it was evicted before it started: ${evicted}`,
      remedies: [remedy('look-at-successor', text)],
    };
  }
  const details = [reason, message].filter(Boolean).join(': ') || 'no reason is given';
  return {
    reason: 'Failed',
    text: `it has failed${where}: ${details}`,
    remedies: [readEvents(facts, name, 'see its Events')],
  };
}
