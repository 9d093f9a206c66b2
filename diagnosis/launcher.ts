import { PLACE_LOST } from '../model/names.ts';
import { readableNeedsOf } from '../model/placement/preferences.ts';
import type { PodShape } from '../model/shapes.ts';
import { bypassesOf } from './bypasses.ts';
import { type Cause, cause, type VmFacts } from './facts.ts';
import { failedPod } from './refused.ts';
import { bringDpuBack, kubectl, plumbline, type Remedy, readEvents, remedy } from './remedies.ts';
import { pausedGuest, type RunningNeeds, runningPod } from './running.ts';
import { concluded, deleting, type LauncherState, type VmState } from './state.ts';
import { waitingPod } from './waiting.ts';

/** A pod by itself, whatever other launchers its VM has. */
export const podState = (facts: VmFacts, pod: PodShape): VmState => concluded(launcherState(facts, pod));

export function launcherState(vm: VmFacts, pod: PodShape): LauncherState {
  const facts: VmFacts = { ...vm, pod };
  const { phase = 'Pending' } = pod.status ?? {};
  const at = pod.spec.nodeName ?? '';
  if (phase === 'Succeeded') return { life: { state: 'stopped' }, causes: [cause('Ended', 'it has ended by itself')] };
  if (phase === 'Failed') return { life: { state: 'failed' }, causes: [failedPod(facts, pod)] };
  if (pod.metadata.deletionTimestamp !== undefined) return deleting(at);
  const needs = readableNeedsOf(pod);
  const bypasses = needs === undefined ? [] : bypassesOf(facts, pod, needs);
  if (at === '') {
    const waits = waitingPod(facts, pod);
    const life = { state: 'waiting', for: waits.reason === 'Gated' ? 'gates' : 'node' } as const;
    return { life, causes: [waits, ...bypasses] };
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
  const causes =
    needs === undefined ? [cause('SharedCpus', `on ${at}`)] : [...runningPod(facts, at, needs), ...bypasses];
  return { life: { state: 'running' }, causes };
}

/** The kubelet's message when the agent refuses a container before its start. */
const BEFORE_START = 'PreStartContainer rpc failed';
const REFUSED = 'code = FailedPrecondition desc = ';

/** For a pod that the extender keeps although it cannot start: its owner creates another one elsewhere. */
const deletePod = ({ namespace }: VmFacts, name: string): Remedy =>
  remedy(
    'delete-pod',
    'delete the pod, so that its owner creates another one, which goes to another node; the extender does not evict it (--eviction hold)',
    kubectl('-n', namespace, 'delete', 'pod', name, '--ignore-not-found'),
  );

const statusesOf = ({ status }: PodShape) => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];

export function startingPod(facts: VmFacts, pod: PodShape): Cause {
  const at = pod.spec.nodeName ?? '';
  const { sandbox, cannotEvict, cannotStart } = facts.events ?? {};
  const name = pod.metadata.name ?? facts.name;
  const waiting = statusesOf(pod)
    .map(({ state }) => state?.waiting)
    .filter((text) => text != null);
  if (cannotEvict !== undefined) {
    const help =
      'remove what the Event CannotEvict names (a disruption budget, an admission webhook), or delete the pod';
    const budgets = kubectl('-n', facts.namespace, 'get', 'poddisruptionbudget');
    const text = `it cannot start on ${at} and cannot be evicted: ${cannotEvict}`;
    return cause('CannotEvict', text, remedy('remove-what-denies-eviction', help, budgets));
  }
  const refused = facts.node?.refusedStart ?? waiting.map(({ message }) => refusedIn(message ?? '')).find(Boolean);
  if (refused !== undefined) {
    const refusal = allocationRefused(at, refused);
    return cannotStart === undefined ? refusal : { ...refusal, remedies: [deletePod(facts, name)] };
  }
  const dead = facts.node?.deadDpu ?? (/DPU/.test(sandbox ?? '') ? sandbox : undefined);
  if (dead !== undefined) return cause('DPUNotReady', `the DPU of ${at} is not ready: ${dead}`, bringDpuBack(at));
  if (cannotStart?.includes(PLACE_LOST) && isUntouched(facts, pod)) {
    return cause('PlaceLost', `it has not started: ${cannotStart}`, deletePod(facts, name));
  }
  const pending = waiting.filter(({ reason }) => reason && !['PodInitializing', 'ContainerCreating'].includes(reason));
  const texts = new Set(pending.map(({ reason, message }) => `${reason}: ${message ?? ''}`));
  const explanation = texts.size > 0 ? [...texts].join('; ') : sandbox;
  const text = `it is on ${at} and has not started: ${explanation ?? 'its containers are being created'}`;
  return explanation === undefined ? cause('Starting', text) : cause('ContainerWaiting', text, readEvents(facts, name));
}

export function allocationRefused(at: string, why: string): Cause {
  const text = 'wait: the extender evicts it, and its owner creates another pod; if it stays, check the extender';
  const wait = remedy('wait', text, plumbline('doctor', 'extender'));
  return cause('AllocationRefused', `the agent on ${at} refused its CPUs: ${why}`, wait);
}

/** Whether its kubelet has not admitted it yet. A pod that was admitted has CPUs, whatever the prediction was. */
function isUntouched({ node }: VmFacts, pod: PodShape): boolean {
  return statusesOf(pod).length === 0 && (node?.assigned ?? []).length === 0;
}

function refusedIn(message: string): string | undefined {
  if (!message.includes(BEFORE_START)) return undefined;
  const at = message.lastIndexOf(REFUSED);
  return at < 0 ? undefined : message.slice(at + REFUSED.length);
}
