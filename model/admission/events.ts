import type { Finding, Severity } from '../finding.ts';
import type { Decision } from './decision.ts';

/** An Event's text, for the person who runs `kubectl describe`. */
export interface EventText {
  readonly type: 'Normal' | 'Warning';
  /** CamelCase, stable. */
  readonly reason: string;
  readonly message: string;
}

const REASONS = { error: 'LauncherRefused', warning: 'LauncherNotAsAsked', information: 'LauncherDecided' } as const;

/** The Events of the VMI about its launcher, since only virt-controller receives warnings on a launcher. No errors. */
export function eventsOf({ done, findings }: Extract<Decision, { outcome: 'changed' | 'refused' }>): EventText[] {
  const of = (severity: Severity) => findings.filter((one) => one.severity === severity).map(eventOf);
  return [...done.map((one): EventText => ({ type: 'Normal', ...one })), ...of('information'), ...of('warning')];
}

/** A finding as an Event. */
export function eventOf({ severity, reason = REASONS[severity], message }: Finding): EventText {
  return { type: severity === 'information' ? 'Normal' : 'Warning', reason, message };
}
