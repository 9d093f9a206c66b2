import type { NodeTopology, PinningState } from '../../kube/node-topology.ts';
import { isPausedAtStart, parsePausedStart } from '../../model/launcher/paused-start.ts';
import { PAUSED_START_ANNOTATION } from '../../model/names.ts';
import type { Finding } from './explanation.ts';
import type { ExplainedPod, ExplainedVmi } from './objects.ts';

/** What the agent of its node reports of a VM's CPU mask. */
export function pinningOf(pod: ExplainedPod, topology: NodeTopology | undefined): PinningState | undefined {
  return topology?.status?.pinning?.find(({ podUID }) => podUID === pod.metadata.uid);
}

export const checkAgent = (node: string) => `check the agent on ${node} (plumbline doctor)`;

/** A VM whose launcher runs and whose guest does not, and what ends that; undefined for one that is not paused. */
export function pausedVm(
  vmi: ExplainedVmi | undefined,
  pod: ExplainedPod,
  topology: NodeTopology | undefined,
): Finding | undefined {
  const pause = vmi?.status?.conditions.find(({ type, status }) => type === 'Paused' && status === 'True');
  if (vmi === undefined || pause === undefined) return undefined;
  const at = pod.spec.nodeName ?? '';
  const { reason = '', lastTransitionTime: since = '' } = pause;
  const record = parsePausedStart(vmi.metadata.annotations?.[PAUSED_START_ANNOTATION]);
  if (isPausedAtStart(record, { reason, since })) return waitingToBePinned(at, pinningOf(pod, topology));
  const why = `it is on ${at} and does not run${pause.message ? `: ${pause.message}` : reason && `: ${reason}`}`;
  return { stage: 'paused', why, help: [`virtctl unpause vm ${vmi.metadata.name}, unless its pause is wanted`] };
}

function waitingToBePinned(at: string, pinning: PinningState | undefined): Finding {
  const waits = `it is on ${at} and does not run until its vCPUs are pinned`;
  if (pinning === undefined) {
    return { stage: 'paused', why: `${waits}, of which its agent has not reported`, help: [checkAgent(at)] };
  }
  if (pinning.state === 'pinned') {
    const help = ['wait: the extender resumes it; if it stays, see the events and plumbline doctor extender'];
    return { stage: 'paused', why: `it is on ${at}, pinned, and about to be resumed`, help };
  }
  const { reason = '', message = '' } = pinning;
  const why = `${waits}, which its agent refuses (${reason}): ${message}`;
  return { stage: 'paused', why, help: ['correct plumbline.dev/cpu-mask on the VM’s template and restart the VM'] };
}
