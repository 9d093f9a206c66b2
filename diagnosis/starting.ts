import { PLACE_LOST } from '../model/names.ts';
import type { PodShape } from '../model/shapes.ts';
import type { Cause, VmFacts } from './facts.ts';
import { bringDpuBack, kubectl, plumbline, type Remedy, readEvents, remedy } from './remedies.ts';

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

const isPlaceLost = (message: string): boolean => message.includes(PLACE_LOST);

export function startingPod(facts: VmFacts, pod: PodShape): Cause {
  const at = pod.spec.nodeName ?? '';
  const { sandbox, cannotEvict, cannotStart } = facts.events ?? {};
  const name = pod.metadata.name ?? facts.name;
  const waiting = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
    .map(({ state }) => state?.waiting)
    .filter((text) => text != null);
  if (cannotEvict !== undefined) {
    const help =
      'remove what the Event CannotEvict names (a disruption budget, an admission webhook), or delete the pod';
    const pods = kubectl('-n', facts.namespace, 'get', 'poddisruptionbudget');
    return {
      reason: 'CannotEvict',
      text: `it cannot start on ${at} and cannot be evicted: ${cannotEvict}`,
      remedies: [remedy('remove-what-denies-eviction', help, pods)],
    };
  }
  const refused = facts.node?.refusedStart ?? waiting.map(({ message }) => refusedIn(message ?? '')).find(Boolean);
  if (refused !== undefined) {
    const cause = allocationRefused(at, refused);
    return cannotStart === undefined ? cause : { ...cause, remedies: [deletePod(facts, name)] };
  }
  const dead = facts.node?.deadDpu ?? (/DPU/.test(sandbox ?? '') ? sandbox : undefined);
  if (dead !== undefined) {
    return { reason: 'DPUNotReady', text: `the DPU of ${at} is not ready: ${dead}`, remedies: [bringDpuBack(at)] };
  }
  if (cannotStart !== undefined && isPlaceLost(cannotStart) && isUntouched(facts, pod)) {
    return { reason: 'PlaceLost', text: `it has not started: ${cannotStart}`, remedies: [deletePod(facts, name)] };
  }
  const pending = waiting.filter(({ reason }) => reason && !['PodInitializing', 'ContainerCreating'].includes(reason));
  const texts = new Set(pending.map(({ reason, message }) => `${reason}: ${message ?? ''}`));
  const explanation = texts.size > 0 ? [...texts].join('; ') : sandbox;
  const text = `it is on ${at} and has not started: ${explanation ?? 'its containers are being created'}`;
  if (explanation === undefined) return { reason: 'Starting', text, remedies: [] };
  return { reason: 'ContainerWaiting', text, remedies: [readEvents(facts, name, 'see its Events')] };
}

export function allocationRefused(at: string, why: string): Cause {
  const text = 'wait: the extender evicts it, and its owner creates another pod; if it stays, check the extender';
  return {
    reason: 'AllocationRefused',
    text: `the agent on ${at} refused its CPUs: ${why}`,
    remedies: [remedy('wait', text, plumbline('doctor', 'extender'))],
  };
}

/** Whether its kubelet has not admitted it yet. A pod that was admitted has CPUs, whatever the prediction was. */
function isUntouched({ node }: VmFacts, { status }: PodShape): boolean {
  const statuses = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return statuses.length === 0 && (node?.assigned ?? []).length === 0;
}

function refusedIn(message: string): string | undefined {
  if (!message.includes(BEFORE_START)) return undefined;
  const at = message.lastIndexOf(REFUSED);
  return at < 0 ? undefined : message.slice(at + REFUSED.length);
}
