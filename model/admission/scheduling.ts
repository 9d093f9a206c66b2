import { type Finding, quote } from '../errors.ts';
import type { SchedulerFacts } from './facts.ts';

/** The API server's default for a pod without a scheduler. */
export const DEFAULT_SCHEDULER = 'default-scheduler';
const NOT_READY = 'scheduler-not-ready';

export interface Scheduling {
  /** Undefined leaves the pod's own. */
  readonly set: string | undefined;
  readonly findings: readonly Finding[];
}

const otherText = (podScheduler: string, schedulerName: string) =>
  `${quote(podScheduler)} does not check kubelets, networks and DPUs unless it asks Plumbline's extender; remove it for ${schedulerName}`;

/** @param podScheduler the pod's current schedulerName */
export function schedulingOf(podScheduler: string | undefined, { schedulerName, away }: SchedulerFacts): Scheduling {
  if (schedulerName === '') return { set: undefined, findings: [] };
  if (isOther(podScheduler, schedulerName)) {
    const message = `The pod keeps its scheduler: ${otherText(podScheduler, schedulerName)}`;
    const code = 'other-scheduler';
    return { set: undefined, findings: [{ severity: 'warning', code, reason: 'OtherScheduler', message }] };
  }
  return {
    set: podScheduler === schedulerName ? undefined : schedulerName,
    findings: away === undefined ? [] : [notReady(schedulerName, away)],
  };
}

/** The findings that stay true while the pod exists: a scheduler that does not work at present will work again. */
export function lastingFindings({ findings }: Scheduling): readonly Finding[] {
  return findings.filter(({ code }) => code !== NOT_READY);
}

export function schedulerWarnings(templateScheduler: string | undefined, schedulerName: string): string[] {
  if (schedulerName === '' || !isOther(templateScheduler, schedulerName)) return [];
  return [`spec.schedulerName: ${otherText(templateScheduler, schedulerName)}`];
}

function isOther(podScheduler: string | undefined, schedulerName: string): podScheduler is string {
  return (
    podScheduler !== undefined &&
    podScheduler !== '' &&
    podScheduler !== DEFAULT_SCHEDULER &&
    podScheduler !== schedulerName
  );
}

function notReady(schedulerName: string, away: string): Finding {
  const message = `The pod waits for ${schedulerName}: ${away}. See kubectl -n plumbline-system get pods`;
  return { severity: 'warning', code: NOT_READY, reason: 'SchedulerNotReady', message };
}
