import { bringWebhookBack, checkVirtController, readEvents } from './common-remedies.ts';
import type { Cause, VmFacts } from './facts.ts';
import type { Reason } from './reasons.ts';
import { rejectedBefore } from './rejected.ts';
import { kubectl, type Remedy, remedy, virtctl } from './remedy.ts';

/** The state of a VM without a launcher. */
export function withoutLauncher(facts: VmFacts): Cause {
  const { machine, instance } = facts;
  const rejected = rejectedBefore(facts);
  if (rejected !== undefined) return rejected;
  if (instance !== undefined) {
    if (instance.refusal === undefined) return noWord(facts, instance.phase, instance.reason);
    const text = `KubeVirt cannot create its launcher: ${instance.refusal}`;
    return { ...denied(facts, instance.refusal), text };
  }
  if (machine?.failure)
    return { ...denied(facts, machine.failure), text: `KubeVirt cannot start it: ${machine.failure}` };
  if (machine?.wanted === false) {
    const { name, namespace } = facts;
    const start = remedy('start', 'switch it on', virtctl('start', name, '-n', namespace));
    return { reason: 'SwitchedOff', text: 'it is switched off', remedies: [start] };
  }
  const said = machine?.says ? ` (it says ${machine.says})` : '';
  const text = `KubeVirt has not created its instance yet${said}`;
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

/** Remedies for a refused launcher, by the component that refused it. */
const DENIALS: readonly (readonly [RegExp, Reason, (facts: VmFacts) => Remedy])[] = [
  [/failed calling webhook .*plumbline/, 'WebhookUnavailable', bringWebhookBack],
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

function denied(facts: VmFacts, text: string): Omit<Cause, 'text'> {
  const known = DENIALS.find(([pattern]) => pattern.test(text));
  if (known === undefined) {
    return { reason: 'LauncherDenied', remedies: [remedy('correct-vm', 'change what the message says')] };
  }
  return { reason: known[1], remedies: [known[2](facts)] };
}
