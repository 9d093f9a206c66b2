import type { EventRecorder, EventTarget } from '../../kube/events.ts';
import type { VmiReference } from '../../model/launcher/recognize.ts';
import type { PodDecision } from './decision.ts';

/** Says on the VMI what was done, since warnings on a launcher reach virt-controller only. */
export function announceDecision(events: EventRecorder, target: EventTarget, decision: PodDecision): void {
  for (const { reason, message } of [...decision.done, ...decision.notes]) {
    events.record(target, { type: 'Normal', reason, message });
  }
  for (const message of decision.warnings) {
    events.record(target, { type: 'Warning', reason: 'LauncherNotAsAsked', message });
  }
  for (const { message } of decision.refusals) announceRefusal(events, target, message);
}

export function announceRefusal(events: EventRecorder, target: EventTarget, message: string): void {
  events.record(target, { type: 'Warning', reason: 'LauncherRefused', message });
}

export function vmiTarget(namespace: string, { name, uid }: VmiReference): EventTarget {
  return { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', namespace, name, uid };
}
