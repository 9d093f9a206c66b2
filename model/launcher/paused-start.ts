import { quote } from '../errors.ts';
import { CPU_MASK_START_ANNOTATION } from '../names.ts';
import { maskRequestOf } from './mask-request.ts';
import type { MetaShape, VmiShape } from './shapes.ts';

/**
 * Pinned before the guest runs: the webhook has a VMI with a CPU mask start paused and writes a record on it; the
 * extender ends that pause, and no other, once the node's agent reports that the vCPUs are pinned.
 *
 *     waiting ──seen paused──> paused <since> ──pinned, unpaused──────────> resumed
 *                                   └──that pause is over by another's hand──┘
 *
 * `since` is when the pause began, by KubeVirt's condition, and distinguishes it from a later pause by a user. A
 * replica that takes over in between neither forgets a VM nor ends a user's pause.
 */
export type PausedStart =
  | { readonly state: 'waiting' }
  | { readonly state: 'paused'; readonly since: string }
  | { readonly state: 'resumed' }
  /** Another version of Plumbline wrote it. */
  | { readonly state: 'unknown'; readonly text: string };

/** The pause at start is KubeVirt's own pause "by user"; an I/O error and a migration pause for other reasons. */
const OUR_PAUSE = 'PausedByUser';

/** KubeVirt's condition Paused. */
export interface Pause {
  readonly reason: string;
  /** RFC 3339. */
  readonly since: string;
}

/** A VMI by what a pause depends on. */
export interface StartingVmi {
  readonly record: PausedStart | undefined;
  readonly phase: string;
  /** The pause it is in. */
  readonly paused: Pause | undefined;
}

export interface PinningReport {
  readonly state: 'pinned' | 'unpinned' | 'refused';
  /** CamelCase; '' where there is nothing to say. */
  readonly reason: string;
  readonly message: string;
}

export type StartStep =
  | { readonly do: 'nothing' }
  /** Until the agent says something. */
  | { readonly do: 'wait' }
  | { readonly do: 'record'; readonly record: PausedStart }
  | { readonly do: 'unpause' }
  /** It stays paused, and the reason must be reported. */
  | { readonly do: 'tell'; readonly reason: string; readonly message: string };

/**
 * Whether the webhook has a VMI start paused: it has a mask that pins something, its user left the start to KubeVirt and did
 * not choose a start without a pause, and nothing forbids one (KubeVirt allows none with a liveness probe).
 * @throws ParseError if the mask cannot be read
 */
export function pausesAtStart({ metadata, spec }: { metadata: MetaShape; spec: VmiShape['spec'] }): boolean {
  if (spec.startStrategy || spec.livenessProbe != null || startsRunning(metadata)) return false;
  return spec.domain.cpu?.dedicatedCpuPlacement !== true && maskRequestOf(metadata) !== undefined;
}

/** Whether a pause is the one with which Plumbline had the VMI start. */
export function isPausedAtStart(record: PausedStart | undefined, { reason, since }: Pause): boolean {
  if (reason !== OUR_PAUSE) return false;
  return record?.state === 'waiting' || (record?.state === 'paused' && record.since === since);
}

/** Whether its user has it start without a pause, and pinned once it runs. An unknown value is none. */
export function startsRunning({ annotations }: MetaShape): boolean {
  return annotations?.[CPU_MASK_START_ANNOTATION] === 'running';
}

/** The next step for a VMI. Its record contains only pauses of Plumbline's own. */
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
  const { reason, message } = pinning;
  return { do: 'tell', reason, message };
}

function unknownRecord(text: string): StartStep {
  const message = `its record ${quote(text)} is of another version of Plumbline: upgrade the extender, or unpause the VM yourself`;
  return { do: 'tell', reason: 'UnknownRecord', message };
}

/** A record as its annotation's value. An unknown record stays as it was written. */
export function formatPausedStart(record: PausedStart): string {
  if (record.state === 'unknown') return record.text;
  return record.state === 'paused' ? `paused ${record.since}` : record.state;
}

/** Undefined where there is none. Only the webhook and the extender can have written it, of this version or another. */
export function parsePausedStart(text: string | undefined): PausedStart | undefined {
  if (text === undefined) return undefined;
  if (text === 'waiting' || text === 'resumed') return { state: text };
  const since = text.startsWith('paused ') ? text.slice('paused '.length) : '';
  return since === '' ? { state: 'unknown', text } : { state: 'paused', since };
}
