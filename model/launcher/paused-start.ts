import { quote } from '../errors.ts';
import { CPU_MASK_START_ANNOTATION } from '../names.ts';
import type { MetaShape, VmiShape } from '../shapes.ts';
import { maskRequestOf } from './mask-request.ts';

/**
 * The webhook makes a VMI with a CPU mask start paused and records that; the extender ends that pause, and no other,
 * when the agent reports its vCPUs pinned: waiting → `paused <since>` → resumed (also if someone else ends the pause).
 * `since` distinguishes the pause from a later one by a user, also for a replica that takes over.
 */
export type PausedStart =
  | { readonly state: 'waiting' }
  | { readonly state: 'paused'; readonly since: string }
  | { readonly state: 'resumed' }
  | { readonly state: 'unknown'; readonly text: string };

/** The pause at start is KubeVirt's pause "by user". Pauses for an I/O error or a migration have other reasons. */
const OUR_PAUSE = 'PausedByUser';

export interface Pause {
  readonly reason: string;
  /** RFC 3339. */
  readonly since: string;
}

export interface StartingVmi {
  readonly record: PausedStart | undefined;
  readonly phase: string;
  readonly paused: Pause | undefined;
}

export interface PinningReport {
  readonly state: 'pinned' | 'unpinned' | 'refused';
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

type StartStep =
  | { readonly do: 'nothing' }
  | { readonly do: 'wait' }
  | { readonly do: 'record'; readonly record: PausedStart }
  | { readonly do: 'unpause' }
  | { readonly do: 'tell'; readonly reason: string; readonly message: string };

/** A mask pins something, the user did not choose otherwise, and there is no liveness probe. @throws ParseError */
export function pausesAtStart({ metadata, spec }: { metadata: MetaShape; spec: VmiShape['spec'] }): boolean {
  if (spec.startStrategy || spec.livenessProbe != null || startsRunning(metadata)) return false;
  return spec.domain.cpu?.dedicatedCpuPlacement !== true && maskRequestOf(metadata) !== undefined;
}

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

/** An unknown record keeps its text. */
export function formatPausedStart(record: PausedStart): string {
  if (record.state === 'unknown') return record.text;
  return record.state === 'paused' ? `paused ${record.since}` : record.state;
}

/** Only the webhook and the extender write it, in this version or another. */
export function parsePausedStart(text: string | undefined): PausedStart | undefined {
  if (text === undefined) return undefined;
  if (text === 'waiting' || text === 'resumed') return { state: text };
  const since = text.startsWith('paused ') ? text.slice('paused '.length) : '';
  return since === '' ? { state: 'unknown', text } : { state: 'paused', since };
}
