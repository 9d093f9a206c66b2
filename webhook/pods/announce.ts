import type { EventTarget, EventText } from '../../kube/events.ts';
import type { VmiReference } from '../../model/launcher/recognize.ts';
import type { PodDecision } from './decision.ts';

/** What is said on the VMI about a launcher, since warnings on a launcher reach virt-controller only. */
export function textsOf({ done, notes, warnings }: PodDecision): EventText[] {
  return [
    ...[...done, ...notes].map(({ reason, message }): EventText => ({ type: 'Normal', reason, message })),
    ...warnings.map((message): EventText => ({ type: 'Warning', reason: 'LauncherNotAsAsked', message })),
  ];
}

export function refusalText(message: string): EventText {
  return { type: 'Warning', reason: 'LauncherRefused', message };
}

export function vmiTarget(namespace: string, { name, uid }: VmiReference): EventTarget {
  return { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', namespace, name, uid };
}
