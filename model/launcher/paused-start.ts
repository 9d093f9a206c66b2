import { quote } from '../errors.ts';
import { CPU_MASK_START_ANNOTATION } from '../names.ts';
import type { MetaShape, VmiShape } from '../shapes.ts';
import { maskRequestOf } from './mask-request.ts';

/**
 * Pinning before the guest runs. The webhook makes a VMI with a CPU mask start paused and records that on the VMI. The
 * extender ends that pause, and no other, after the node's agent reports that the vCPUs are pinned.
 *
 *     waiting ──seen paused──> paused <since> ──pinned, unpaused──────────> resumed
 *                                   └──someone else ended that pause────────┘
 *
 * `since` is the start of the pause in KubeVirt's condition, which distinguishes it from a later pause by a user. A
 * replica that takes over in between neither loses a VM nor ends a user's pause.
 */
export type PausedStart =
  | { readonly state: 'waiting' }
  | { readonly state: 'paused'; readonly since: string }
  | { readonly state: 'resumed' }
  /** A different version of Plumbline wrote the record. */
  | { readonly state: 'unknown'; readonly text: string };

/** The pause at start is KubeVirt's pause "by user". Pauses for an I/O error or a migration have other reasons. */
const OUR_PAUSE = 'PausedByUser';

/** KubeVirt's condition Paused. */
export interface Pause {
  readonly reason: string;
  /** RFC 3339. */
  readonly since: string;
}

/** A VMI, with the fields that matter for a pause. */
export interface StartingVmi {
  readonly record: PausedStart | undefined;
  readonly phase: string;
  readonly paused: Pause | undefined;
}

export interface PinningReport {
  readonly state: 'pinned' | 'unpinned' | 'refused';
  /** CamelCase. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

export type StartStep =
  | { readonly do: 'nothing' }
  /** Until the agent reports. */
  | { readonly do: 'wait' }
  | { readonly do: 'record'; readonly record: PausedStart }
  | { readonly do: 'unpause' }
  /** It stays paused, and the reason must be reported. */
  | { readonly do: 'tell'; readonly reason: string; readonly message: string };

/**
 * Whether the webhook makes a VMI start paused: it has a mask that pins something, its user left the start to KubeVirt
 * and did not choose a start without a pause, and a pause is possible (KubeVirt refuses one with a liveness probe).
 * @throws ParseError if the mask cannot be parsed
 */
export function pausesAtStart({ metadata, spec }: { metadata: MetaShape; spec: VmiShape['spec'] }): boolean {
  if (spec.startStrategy || spec.livenessProbe != null || startsRunning(metadata)) return false;
  return spec.domain.cpu?.dedicatedCpuPlacement !== true && maskRequestOf(metadata) !== undefined;
}

/** Whether a pause is the one with which Plumbline made the VMI start. */
export function isPausedAtStart(record: PausedStart | undefined, { reason, since }: Pause): boolean {
  if (reason !== OUR_PAUSE) return false;
  return record?.state === 'waiting' || (record?.state === 'paused' && record.since === since);
}

/** Whether the user chose a start without a pause, with pinning while the VM runs. An unknown value does not count. */
export function startsRunning({ annotations }: MetaShape): boolean {
  return annotations?.[CPU_MASK_START_ANNOTATION] === 'running';
}

/** The next step for a VMI. A record contains only pauses that Plumbline caused. */
export function nextStep({ record, phase, paused }: StartingVmi, pinning: PinningReport | undefined): StartStep {
  if (record === undefined || record.state === 'resumed' || phase !== 'Running') return { do: 'nothing' };
  if (record.state === 'unknown') return paused?.reason === OUR_PAUSE ? unknownRecord(record.text) : { do: 'nothing' };
  const ours = paused !== undefined && isPausedAtStart(record, paused);
  if (record.state === 'waiting') {
    return ours ? { do: 'record', record: { state: 'paused', since: paused.since } } : { do: 'nothing' };
  }
  if (!ours) return { do: 'record', record: { state: 'resumed' } };
  if (pinning === undefined) return { do: 'wait' };
  if (pinning.state === 'pinned') return { do: 'unpause' };
  const { reason = '', message = '' } = pinning;
  return { do: 'tell', reason, message };
}

function unknownRecord(text: string): StartStep {
  const message = `its record ${quote(text)} is of another version of Plumbline: upgrade the extender, or unpause the VM yourself`;
  return { do: 'tell', reason: 'UnknownRecord', message };
}

/** A record as the annotation's value. An unknown record keeps its text. */
export function formatPausedStart(record: PausedStart): string {
  if (record.state === 'unknown') return record.text;
  return record.state === 'paused' ? `paused ${record.since}` : record.state;
}

/**
 * Parses a record; undefined if there is none. Only the webhook and the extender write it, in this version or another.
 */
export function parsePausedStart(text: string | undefined): PausedStart | undefined {
  if (text === undefined) return undefined;
  if (text === 'waiting' || text === 'resumed') return { state: text };
  const since = text.startsWith('paused ') ? text.slice('paused '.length) : '';
  return since === '' ? { state: 'unknown', text } : { state: 'paused', since };
}
