import { readableNeedsOf } from '../model/placement/preferences.ts';
import type { PodShape } from '../model/shapes.ts';
import { bypassesOf } from './bypasses.ts';
import type { Cause, VmFacts } from './facts.ts';
import { failedPod } from './rejected.ts';
import { pausedGuest, type RunningNeeds, runningPod } from './running.ts';
import { startingPod } from './starting.ts';
import { concluded, type LauncherState, type VmState } from './state.ts';
import { waitingPod } from './waiting.ts';

/** A pod by itself, whatever other launchers its VM has. */
export const podState = (facts: VmFacts, pod: PodShape): VmState => concluded(launcherState(facts, pod));

export function launcherState(vm: VmFacts, pod: PodShape): LauncherState {
  const facts: VmFacts = { ...vm, pod };
  const { phase = 'Pending' } = pod.status ?? {};
  const at = pod.spec.nodeName ?? '';
  if (phase === 'Succeeded') {
    return { life: { state: 'stopped' }, causes: [{ reason: 'Ended', text: 'it has ended by itself', remedies: [] }] };
  }
  if (phase === 'Failed') return { life: { state: 'failed' }, causes: [failedPod(facts, pod)] };
  if (pod.metadata.deletionTimestamp !== undefined) {
    const text = `it is being deleted${at === '' ? '' : ` on ${at}`}`;
    return { life: { state: 'stopping' }, causes: [{ reason: 'Deleting', text, remedies: [] }] };
  }
  const needs = readableNeedsOf(pod);
  const bypasses = needs === undefined ? [] : bypassesOf(facts, pod, needs);
  if (at === '') {
    const waits = waitingPod(facts, pod);
    return {
      life: { state: 'waiting', for: waits.reason === 'Gated' ? 'gates' : 'node' },
      causes: [waits, ...bypasses],
    };
  }
  if (phase !== 'Running') return { life: { state: 'starting' }, causes: [startingPod(facts, pod), ...bypasses] };
  return runningState(facts, at, needs, bypasses);
}

/** @param needs undefined if they cannot be parsed @param bypasses of `bypassesOf` for the whole pod */
export function runningState(
  facts: VmFacts,
  at: string,
  needs: RunningNeeds | undefined,
  bypasses: readonly Cause[] = [],
): LauncherState {
  const { pause, node = at } = facts.instance ?? {};
  // During a migration the guest is in one of two launchers.
  if (pause !== undefined && node === at) {
    return { life: { state: 'paused' }, causes: [...pausedGuest(facts, at, pause), ...bypasses] };
  }
  if (needs === undefined)
    return { life: { state: 'running' }, causes: [{ reason: 'SharedCpus', text: `on ${at}`, remedies: [] }] };
  return { life: { state: 'running' }, causes: [...runningPod(facts, at, needs), ...bypasses] };
}
