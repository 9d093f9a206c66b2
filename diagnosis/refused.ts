import { wantsWholeCores } from '../model/launcher/annotation.ts';
import { NAMESPACE } from '../model/names.ts';
import type { PodShape } from '../model/shapes.ts';
import { type Cause, cause, type RejectionFacts, type VmFacts, whileOff } from './facts.ts';
import type { Reason } from './reasons.ts';
import {
  addAnnotation,
  kubectl,
  plumbline,
  type Remedy,
  readEvents,
  remedy,
  startOnceWebhookWorks,
  virtctl,
} from './remedies.ts';

const CHECK_VIRT_CONTROLLER = remedy(
  'check-virt-controller',
  'check virt-controller',
  kubectl('-n', 'kubevirt', 'get', 'pods', '-l', 'kubevirt.io=virt-controller'),
);

export function withoutLauncher(facts: VmFacts): Cause {
  const { machine, instance, name, namespace } = facts;
  const rejected = rejectedBefore(facts);
  if (rejected !== undefined) return rejected;
  if (instance !== undefined) {
    if (instance.refusal === undefined) return noWord(facts, instance.phase, instance.reason);
    return denied(namespace, 'KubeVirt cannot create its launcher', instance.refusal);
  }
  if (machine?.failure) return denied(namespace, 'KubeVirt cannot start it', machine.failure);
  if (machine?.shouldRun === false) {
    const start = remedy('start', 'switch it on', virtctl('start', name, '-n', namespace));
    return cause('SwitchedOff', 'it is switched off', start);
  }
  const status = machine?.says ? ` (it says ${machine.says})` : '';
  return cause('NoInstance', `KubeVirt has not created its instance yet${status}`, CHECK_VIRT_CONTROLLER);
}

function noWord(facts: VmFacts, phase: string, why: string | undefined): Cause {
  if (phase !== 'Failed' && phase !== 'Succeeded') {
    return cause('NoLauncher', 'KubeVirt has not created its launcher', CHECK_VIRT_CONTROLLER);
  }
  const text = `its instance has ended (${phase}${why ? `: ${why}` : ''}) and its launcher is gone`;
  return cause(phase === 'Failed' ? 'Failed' : 'Ended', text, readEvents(facts, facts.name));
}

const REPAIR_WEBHOOK = remedy(
  'bring-webhook-back',
  'repair the webhook',
  kubectl('-n', NAMESPACE, 'get', 'pods'),
  plumbline('doctor', 'webhook', 'certificates'),
);
const RESTORE_WEBHOOK = remedy(
  'bring-webhook-back',
  'restore what calls the webhook: nothing is wrong with the VM',
  plumbline('doctor', 'installed', 'webhook'),
);
const QUOTA =
  'raise the namespace’s quota: it counts the whole launcher, which is the guest’s CPUs, one for an isolated emulator, ' +
  'padding to whole cores, and KubeVirt’s side containers (15m for the console log)';
const LIMIT_RANGE = 'raise the LimitRange of the namespace, or ask for less';

const raise = (id: string, text: string, limit: string) => (namespace: string) =>
  remedy(id, text, kubectl('-n', namespace, 'describe', limit));

const DENIALS: readonly (readonly [RegExp, Reason, (namespace: string) => Remedy])[] = [
  [/failed calling webhook .*plumbline/, 'WebhookUnavailable', () => REPAIR_WEBHOOK],
  [/plumbline: .*without a decision/s, 'WebhookDenied', () => RESTORE_WEBHOOK],
  [/plumbline: /, 'WebhookDenied', () => remedy('correct-vm', 'change the VM as the webhook says')],
  [/exceeded quota/, 'QuotaExceeded', raise('raise-quota', QUOTA, 'resourcequota')],
  [/maximum .* usage per|limitrange/i, 'LimitRangeExceeded', raise('raise-limit-range', LIMIT_RANGE, 'limitrange')],
  [/^/, 'LauncherDenied', () => remedy('correct-vm', 'change what the message says')],
];

/** What the API server writes around the cause if it cannot call a webhook. */
const CALL = /^.*failed calling webhook "[^"]*": (?:failed to call webhook: )?(?:Post "[^"]*": )?/s;

/** @param effect what KubeVirt cannot do because of the refusal */
function denied(namespace: string, effect: string, refusal: string): Cause {
  const [, reason, remedyOf] = DENIALS.find(([pattern]) => pattern.test(refusal))!;
  const away = `the webhook does not answer (${refusal.replace(CALL, '')}), so ${effect}`;
  return cause(reason, reason === 'WebhookUnavailable' ? away : `${effect}: ${refusal}`, remedyOf(namespace));
}

const IF_AGAIN =
  'another pod got its CPUs first, and it is retried; if this happens again, look for a second scheduler';
const RETRIED = remedy('wait', IF_AGAIN, plumbline('doctor', 'extender'));
const FIND_NODES = remedy(
  'check-extender',
  'no NUMA nodes have all requested resources: find nodes with free CPUs, and check that its scheduler calls the extender',
  plumbline('top'),
  plumbline('doctor', 'extender'),
);

/** By the reason of a kubelet's rejection; undefined for any other reason. */
function causeOfRejection(
  { reason, message }: Pick<RejectionFacts, 'reason' | 'message'>,
  annotations: VmFacts['annotations'],
  facts: VmFacts,
): readonly [Reason, Remedy] | undefined {
  if (reason === 'TopologyAffinityError') return ['TopologyRejected', FIND_NODES];
  if (reason === 'UnexpectedAdmissionError') return ['AdmissionRejected', RETRIED];
  if (reason !== 'SMTAlignmentError') return undefined;
  if (message.includes('not enough free physical CPUs')) return ['CoresTaken', RETRIED];
  return wantsWholeCores({ annotations })
    ? ['UnpaddedRejected', startOnceWebhookWorks(facts)]
    : ['UnalignedRejected', addAnnotation('opt in to whole cores', facts)];
}

const of = (node: string | undefined) => (node ? ` of ${node}` : '');

/** KubeVirt deletes a rejected VMI with its launcher and starts another one, so only the Event is left. */
function rejectedBefore(facts: VmFacts): Cause | undefined {
  const { rejection, machine, annotations } = facts;
  const rejected = rejection && causeOfRejection(rejection, annotations, facts);
  if (rejection === undefined || rejected === undefined) return undefined;
  const { failures = 0, retryIn = 0 } = machine ?? {};
  const next = retryIn > 0 ? `, and starts another in ${Math.ceil(retryIn)} s` : ', and starts another';
  const times = failures > 1 ? ` (${failures} times in a row)` : '';
  const { reason, message } = rejection;
  const why = `the kubelet${of(rejection.node)} rejected its launcher (${reason}): ${message}`;
  const off = rejected[0] === 'UnpaddedRejected' ? whileOff(facts) : '';
  return cause(rejected[0], `${why}${off}; KubeVirt has deleted it${times}${next}`, rejected[1]);
}

export function failedPod(facts: VmFacts, pod: PodShape): Cause {
  const { reason = '', message = '' } = pod.status ?? {};
  const where = of(pod.spec.nodeName);
  const rejected = causeOfRejection({ reason, message }, pod.metadata.annotations, facts);
  if (rejected) return cause(rejected[0], `the kubelet${where} rejected it (${reason}): ${message}`, rejected[1]);
  const evicted = facts.events?.evicted;
  if (evicted !== undefined) {
    const text = 'its owner creates another pod, which goes to another node: check that pod';
    return cause(
      'EvictedBeforeStart',
      `it was evicted before it started: ${evicted}`,
      remedy('look-at-successor', text),
    );
  }
  const details = [reason, message].filter(Boolean).join(': ') || 'no reason is given';
  return cause('Failed', `it has failed${where}: ${details}`, readEvents(facts, pod.metadata.name ?? facts.name));
}
