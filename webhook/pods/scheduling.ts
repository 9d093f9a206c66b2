import type { EventText } from '../../kube/events.ts';
import { quote } from '../../model/errors.ts';
import type { PatchOperation } from '../admission-review.ts';

/** Which scheduler launchers, and pods that opt in, are given. */
export interface SchedulerRoute {
  /** `plumbline-scheduler`; empty: every pod keeps its own. */
  readonly schedulerName: string;
  /** Why that scheduler schedules nothing at present; undefined while it works. */
  readonly schedulerAway: () => string | undefined;
}

/** What the API server fills in where a pod names no scheduler. */
const DEFAULT_SCHEDULER = 'default-scheduler';

/** What becomes of a pod's scheduler, and what its owner should know about it. */
export interface Scheduling {
  readonly patch: readonly PatchOperation[];
  readonly texts: readonly EventText[];
}

const KEPT: Scheduling = { patch: [], texts: [] };

/** @param own the pod's schedulerName as it is now */
export function schedulingFor(own: string | undefined, { schedulerName, schedulerAway }: SchedulerRoute): Scheduling {
  if (schedulerName === '') return KEPT;
  if (!isOther(own, schedulerName)) {
    const away = schedulerAway();
    const waits: EventText[] =
      away === undefined
        ? []
        : [{ type: 'Warning', reason: 'SchedulerNotReady', message: waitsText(schedulerName, away) }];
    if (own === schedulerName) return { patch: [], texts: waits };
    return { patch: [{ op: 'add', path: '/spec/schedulerName', value: schedulerName }], texts: waits };
  }
  const message = `The pod keeps its scheduler: ${otherText(own, schedulerName)}`;
  return { patch: [], texts: [{ type: 'Warning', reason: 'OtherScheduler', message }] };
}

/** What the owner of a VM should know about the scheduler that its template names; undefined: nothing. */
export function schedulerWarning(own: string | undefined, schedulerName: string): string | undefined {
  if (schedulerName === '' || !isOther(own, schedulerName)) return undefined;
  return `spec.schedulerName: ${otherText(own, schedulerName)}`;
}

/** Whether a pod names a scheduler of its user's choice. */
function isOther(own: string | undefined, schedulerName: string): own is string {
  return own !== undefined && own !== '' && own !== DEFAULT_SCHEDULER && own !== schedulerName;
}

const otherText = (own: string, schedulerName: string) =>
  `${quote(own)} does not check kubelets, networks and DPUs unless it asks Plumbline's extender; remove it for ${schedulerName}`;

const waitsText = (schedulerName: string, away: string) =>
  `The pod waits for ${schedulerName}: ${away}. See kubectl -n plumbline-system get pods`;
