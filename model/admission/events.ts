import type { Finding, Severity } from '../finding.ts';
import type { Decision } from './decision.ts';

/** Text of an Event, for users of `kubectl describe`. */
export interface EventText {
  readonly type: 'Normal' | 'Warning';
  /** CamelCase, stable. */
  readonly reason: string;
  readonly message: string;
}

const REASONS = { error: 'LauncherRefused', warning: 'LauncherNotAsAsked', information: 'LauncherDecided' } as const;

/**
 * The Events on the VMI about its launcher, because only virt-controller receives admission warnings about a launcher.
 * Errors are not included.
 */
export function eventsOf({ done, findings }: Extract<Decision, { outcome: 'changed' | 'refused' }>): EventText[] {
  const of = (severity: Severity) => findings.filter((one) => one.severity === severity).map(eventOf);
  return [...done.map((one): EventText => ({ type: 'Normal', ...one })), ...of('information'), ...of('warning')];
}

/** Converts a finding into an Event. */
export function eventOf({ severity, reason = REASONS[severity], message }: Finding): EventText {
  return { type: severity === 'information' ? 'Normal' : 'Warning', reason, message };
}
