import { bringDpuBack, readEvents } from './common-remedies.ts';
import type { Cause, StatePod, VmFacts } from './facts.ts';
import { kubectl, plumbline, remedy } from './remedy.ts';

/** How the kubelet words the agent's refusal before a container starts. */
const BEFORE_START = 'PreStartContainer rpc failed';
const REFUSED = 'code = FailedPrecondition desc = ';

/** On a node, not running yet. */
export function startingPod(facts: VmFacts, pod: StatePod): Cause {
  const at = pod.spec.nodeName ?? '';
  const { sandbox, cannotEvict } = facts.events ?? {};
  const name = pod.metadata.name ?? facts.name;
  const waiting = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
    .map(({ state }) => state?.waiting)
    .filter((one) => one != null);
  if (cannotEvict !== undefined) {
    const text =
      'remove what the Event CannotEvict names (a disruption budget, an admission webhook), or delete the pod';
    const pods = kubectl('-n', facts.namespace, 'get', 'poddisruptionbudget');
    return {
      reason: 'CannotEvict',
      text: `it cannot start on ${at} and cannot be evicted: ${cannotEvict}`,
      remedies: [remedy('remove-what-denies-eviction', text, pods)],
    };
  }
  const refused = facts.node?.refusedStart ?? waiting.map(({ message }) => refusedIn(message ?? '')).find(Boolean);
  if (refused !== undefined) {
    return allocationRefused(at, refused);
  }
  const dead = facts.node?.deadDpu ?? (/DPU/.test(sandbox ?? '') ? sandbox : undefined);
  if (dead !== undefined) {
    return { reason: 'DPUNotReady', text: `the DPU of ${at} is not ready: ${dead}`, remedies: [bringDpuBack(at)] };
  }
  const pending = waiting.find(({ reason }) => reason && !['PodInitializing', 'ContainerCreating'].includes(reason));
  const said = pending ? `${pending.reason}: ${pending.message ?? ''}` : sandbox;
  const text = `it is on ${at} and has not started: ${said ?? 'its containers are being created'}`;
  if (said === undefined) return { reason: 'Starting', text, remedies: [] };
  return { reason: 'ContainerWaiting', text, remedies: [readEvents(facts, name, 'see its Events')] };
}

/** The agent keeps it from starting, since its CPUs are not those it was promised. */
export function allocationRefused(at: string, why: string): Cause {
  const text = 'wait: the extender evicts it, so that its owner makes another one; if it stays, see why';
  return {
    reason: 'AllocationRefused',
    text: `the agent on ${at} refused its CPUs: ${why}`,
    remedies: [remedy('wait', text, plumbline('doctor', 'extender'))],
  };
}

function refusedIn(message: string): string | undefined {
  if (!message.includes(BEFORE_START)) return undefined;
  const at = message.lastIndexOf(REFUSED);
  return at < 0 ? undefined : message.slice(at + REFUSED.length);
}
