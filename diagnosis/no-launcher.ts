import type { Cause, VmFacts } from './facts.ts';
import type { Reason } from './reasons.ts';
import { rejectedBefore } from './rejected.ts';
import {
  bringWebhookBack,
  checkVirtController,
  kubectl,
  type Remedy,
  readEvents,
  remedy,
  restoreWebhook,
  virtctl,
} from './remedies.ts';

export function withoutLauncher(facts: VmFacts): Cause {
  const { machine, instance } = facts;
  const rejected = rejectedBefore(facts);
  if (rejected !== undefined) return rejected;
  if (instance !== undefined) {
    if (instance.refusal === undefined) return noWord(facts, instance.phase, instance.reason);
    return denied(facts, 'KubeVirt cannot create its launcher', instance.refusal);
  }
  if (machine?.failure) return denied(facts, 'KubeVirt cannot start it', machine.failure);
  if (machine?.shouldRun === false) {
    const { name, namespace } = facts;
    const start = remedy('start', 'switch it on', virtctl('start', name, '-n', namespace));
    return { reason: 'SwitchedOff', text: 'it is switched off', remedies: [start] };
  }
  const status = machine?.says ? ` (it says ${machine.says})` : '';
  const text = `KubeVirt has not created its instance yet${status}`;
  return { reason: 'NoInstance', text, remedies: [checkVirtController()] };
}

function noWord(facts: VmFacts, phase: string, why: string | undefined): Cause {
  if (phase !== 'Failed' && phase !== 'Succeeded') {
    return { reason: 'NoLauncher', text: 'KubeVirt has not created its launcher', remedies: [checkVirtController()] };
  }
  const text = `its instance has ended (${phase}${why ? `: ${why}` : ''}) and its launcher is gone`;
  const reason = phase === 'Failed' ? 'Failed' : 'Ended';
  return { reason, text, remedies: [readEvents(facts, facts.name, 'see its Events')] };
}

const DENIALS: readonly (readonly [RegExp, Reason, (facts: VmFacts) => Remedy])[] = [
  [/failed calling webhook .*plumbline/, 'WebhookUnavailable', bringWebhookBack],
  [/plumbline: .*without a decision/s, 'WebhookDenied', restoreWebhook],
  [/plumbline: /, 'WebhookDenied', () => remedy('correct-vm', 'change the VM as the webhook says')],
  [
    /exceeded quota/,
    'QuotaExceeded',
    ({ namespace }) =>
      remedy(
        'raise-quota',
        'raise the namespace’s quota: it counts the whole launcher, which is the guest’s CPUs, one for an isolated emulator, ' +
          'padding to whole cores, and KubeVirt’s side containers (15m for the console log)',
        kubectl('-n', namespace, 'describe', 'resourcequota'),
      ),
  ],
  [
    /maximum .* usage per|limitrange/i,
    'LimitRangeExceeded',
    ({ namespace }) =>
      remedy(
        'raise-limit-range',
        'raise the LimitRange of the namespace, or ask for less',
        kubectl('-n', namespace, 'describe', 'limitrange'),
      ),
  ],
];

/** What the API server writes around the cause if it cannot call a webhook. */
const CALL = /^.*failed calling webhook "[^"]*": (?:failed to call webhook: )?(?:Post "[^"]*": )?/s;

/** @param effect what KubeVirt cannot do because of the refusal */
function denied(facts: VmFacts, effect: string, refusal: string): Cause {
  const text = `${effect}: ${refusal}`;
  const denial = DENIALS.find(([pattern]) => pattern.test(refusal));
  if (denial === undefined) {
    return { reason: 'LauncherDenied', text, remedies: [remedy('correct-vm', 'change what the message says')] };
  }
  const [, reason, remedyOf] = denial;
  const away = `the webhook does not answer (${refusal.replace(CALL, '')}), so ${effect}`;
  return { reason, text: reason === 'WebhookUnavailable' ? away : text, remedies: [remedyOf(facts)] };
}
