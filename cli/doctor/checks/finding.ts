import type { Reason } from '../../../model/vm-state/reasons.ts';
import type { Remedy } from '../../../model/vm-state/remedy.ts';
import type { Fix } from './fix.ts';

/** What is looked at; each can be asked for by its name. `preflight` is for before an installation, and only on request. */
export const AREAS = [
  'preflight',
  'installed',
  'webhook',
  'certificates',
  'extender',
  'agents',
  'kubelet',
  'networks',
  'dpu',
  'pods',
] as const;
export type Area = (typeof AREAS)[number];

/** `error`: something does not work. `warning`: it works, and will not always. */
export type Severity = 'error' | 'warning';

/** Something that is not in order. */
export interface Finding {
  readonly area: Area;
  readonly severity: Severity;
  /** What is wrong, naming the object. */
  readonly what: string;
  /** What comes of it. */
  readonly impact: string;
  /** What to do about it. */
  readonly fix: Fix;
  /** What helps until it is done. */
  readonly meanwhile?: Fix | undefined;
  /** The objects it is true of, if there are several: `node/worker-1`. */
  readonly objects?: readonly string[] | undefined;
  /** What it comes from, where several findings may come from the same; they are reported as one. */
  readonly cause?: Cause | undefined;
  /** Of VMs: what is true of them, and what would help, as every output says it. */
  readonly state?: StateFound | undefined;
  /** What else was found that comes from the same, in words. */
  readonly consequences?: readonly string[] | undefined;
}

/**
 * Causes that show in several places. `webhook-away` is a consequence of `certificate` where both are found; the last two are
 * causes on nodes: what VMs suffer there is a consequence.
 */
export type Cause =
  | 'not-installed'
  | 'certificate'
  | 'webhook-away'
  | 'scheduler-away'
  | 'not-routed'
  | 'bad-report'
  | 'agent-away'
  | 'dpu-dead';

export interface StateFound {
  readonly reason: Reason;
  readonly remedies: readonly Remedy[];
  /** Where the VMs are: `node/worker-1`. */
  readonly nodes: readonly string[];
}

/** What more there is to a finding. */
export type FindingDetails = Pick<Finding, 'meanwhile' | 'objects' | 'cause' | 'state'>;

/** What a look at one area came to. */
export interface AreaReport {
  readonly area: Area;
  readonly findings: readonly Finding[];
  /** What was seen and is in order, for people. */
  readonly seen: readonly string[];
  /** What could not be looked at, and why: nothing is claimed of that. */
  readonly unseen: readonly string[];
}

/** A few names, and how many more there are. */
export function some(names: readonly string[], most = 3): string {
  return names.slice(0, most).join(', ') + (names.length > most ? ` and ${names.length - most} more` : '');
}

/** `1 node`, `3 nodes`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}
