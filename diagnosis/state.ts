import { readableNeedsOf } from '../model/placement/preferences.ts';
import { bypassesOf } from './bypasses.ts';
import type { Cause, VmFacts } from './facts.ts';
import { REASONS, type Reason, type Stage, type Verdict, worst } from './reasons.ts';
import { failedPod, rejectedBefore } from './rejected.ts';
import {
  bringWebhookBack,
  checkVirtController,
  kubectl,
  type Remedy,
  readEvents,
  remedy,
  restoreWebhook,
  virtctl,
} from './remedy.ts';
import { pausedGuest, type RunningNeeds, runningPod } from './running.ts';
import { startingPod } from './starting.ts';
import { waitingPod } from './waiting.ts';

export interface VmState {
  readonly state: Stage;
  readonly verdict: Verdict;
  readonly reason: Reason;
  readonly text: string;
  readonly causes: readonly Cause[];
  readonly remedies: readonly Remedy[];
}

const ended = () => concluded('succeeded', [{ reason: 'Ended', text: 'it has ended by itself', remedies: [] }]);

const REJECTED: readonly Reason[] = [
  'UnalignedRejected',
  'UnpaddedRejected',
  'CoresTaken',
  'TopologyRejected',
  'AdmissionRejected',
];

export function vmState(facts: VmFacts): VmState {
  const { pod } = facts;
  if (pod === undefined) return concluded(stageWithout(facts), [withoutLauncher(facts)]);
  const { phase = 'Pending' } = pod.status ?? {};
  const at = pod.spec.nodeName ?? '';
  if (phase === 'Succeeded') return ended();
  if (phase === 'Failed') {
    const cause = failedPod(facts, pod);
    return concluded(REJECTED.includes(cause.reason) ? 'rejected' : 'failed', [cause]);
  }
  if (pod.metadata.deletionTimestamp !== undefined) {
    const text = `it is being deleted${at === '' ? '' : ` on ${at}`}`;
    return concluded('deleting', [{ reason: 'Deleting', text, remedies: [] }]);
  }
  const needs = readableNeedsOf(pod);
  const bypasses = needs === undefined ? [] : bypassesOf(facts, pod, needs);
  if (at === '') {
    const waits = waitingPod(facts, pod);
    return concluded(waits.reason === 'Gated' ? 'gated' : 'unscheduled', [waits, ...bypasses]);
  }
  if (phase !== 'Running') return concluded('starting', [startingPod(facts, pod), ...bypasses]);
  return runningState(facts, at, needs, bypasses);
}

/** @param needs undefined if they cannot be parsed @param bypasses of `bypassesOf` for the whole pod */
export function runningState(
  facts: VmFacts,
  at: string,
  needs: RunningNeeds | undefined,
  bypasses: readonly Cause[] = [],
): VmState {
  const pause = facts.instance?.pause;
  if (pause !== undefined) return concluded('paused', [...pausedGuest(facts, at, pause), ...bypasses]);
  if (needs === undefined) return concluded('running', [{ reason: 'SharedCpus', text: `on ${at}`, remedies: [] }]);
  return concluded('running', [...runningPod(facts, at, needs), ...bypasses]);
}

function stageWithout(facts: VmFacts): Stage {
  const { reason } = withoutLauncher(facts);
  if (REJECTED.includes(reason)) return 'rejected';
  if (reason === 'SwitchedOff') return 'stopped';
  if (reason === 'Failed') return 'failed';
  return reason === 'Ended' ? 'succeeded' : 'no-launcher';
}

function concluded(state: Stage, everyCause: readonly [Cause, ...Cause[]] | readonly Cause[]): VmState {
  const main = worst(everyCause)!;
  const causes = everyCause.filter((one) => one !== main);
  const remedies = new Map(
    [main, ...causes].flatMap((one) => one.remedies).map((one) => [`${one.id} ${one.text}`, one]),
  );
  const { reason, text } = main;
  return { state, verdict: REASONS[reason].verdict, reason, text, causes, remedies: [...remedies.values()] };
}

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
