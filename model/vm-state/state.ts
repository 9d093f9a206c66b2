import { readableNeedsOf } from '../placement/pod-needs.ts';
import { bypassesOf } from './bypasses.ts';
import type { Cause, VmFacts } from './facts.ts';
import { withoutLauncher } from './launching.ts';
import { REASONS, type Reason, type Stage, type Verdict, worst } from './reasons.ts';
import { failedPod } from './rejected.ts';
import type { Remedy } from './remedy.ts';
import { pausedVm, type RunningNeeds, runningPod } from './running.ts';
import { startingPod } from './starting.ts';
import { waitingPod } from './waiting.ts';

/** The state of a VM or pod, the same in every output. */
export interface VmState {
  readonly state: Stage;
  readonly verdict: Verdict;
  /** The most important reason. */
  readonly reason: Reason;
  /** One line. */
  readonly text: string;
  /** The other facts. */
  readonly causes: readonly Cause[];
  /** Remedies, most likely first: those of the reason, then those of the other causes. */
  readonly remedies: readonly Remedy[];
}

/** The state of a VM or pod, from all facts about it. */
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

/**
 * The state of a running pod, for callers that keep only the needs of pods.
 * @param needs undefined if they cannot be parsed
 * @param bypasses the result of `bypassesOf` for the whole pod
 */
export function runningState(
  facts: VmFacts,
  at: string,
  needs: RunningNeeds | undefined,
  bypasses: readonly Cause[] = [],
): VmState {
  const pause = facts.instance?.pause;
  if (pause !== undefined) return concluded('paused', [pausedVm(facts, at, pause), ...bypasses]);
  if (needs === undefined)
    return concluded('running', [{ reason: 'SharedCpus', text: `it runs on ${at}`, remedies: [] }]);
  return concluded('running', [...runningPod(facts, at, needs), ...bypasses]);
}

const ended = () => concluded('succeeded', [{ reason: 'Ended', text: 'it has ended by itself', remedies: [] }]);

const REJECTED: readonly Reason[] = [
  'UnalignedRejected',
  'UnpaddedRejected',
  'CoresTaken',
  'TopologyRejected',
  'AdmissionRejected',
];

function stageWithout(facts: VmFacts): Stage {
  const { reason } = withoutLauncher(facts);
  if (REJECTED.includes(reason)) return 'rejected';
  if (reason === 'SwitchedOff') return 'stopped';
  if (reason === 'Failed') return 'failed';
  return reason === 'Ended' ? 'succeeded' : 'no-launcher';
}

function concluded(state: Stage, found: readonly [Cause, ...Cause[]] | readonly Cause[]): VmState {
  const main = worst(found)!;
  const causes = found.filter((one) => one !== main);
  const remedies = new Map(
    [main, ...causes].flatMap((one) => one.remedies).map((one) => [`${one.id} ${one.text}`, one]),
  );
  const { reason, text } = main;
  return { state, verdict: REASONS[reason].verdict, reason, text, causes, remedies: [...remedies.values()] };
}
