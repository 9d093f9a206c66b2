import * as z from 'zod';
import { cut, type Finding } from '../errors.ts';
import { parseJson } from '../json.ts';
import { DECISION_ANNOTATION } from '../names.ts';
import type { ResolvedNetwork } from '../networks/resolve.ts';
import { formatPreferences, type PlacementPreferences } from '../placement/preferences.ts';
import type { MetaShape } from '../shapes.ts';
import type { PodChange, PodCpus } from './facts.ts';
import type { OwnerNetworks } from './networks.ts';

interface DecisionText
  extends Pick<PodCpus, 'stated' | 'threadsPerCore' | 'padding' | 'unpadded'>,
    Pick<OwnerNetworks, 'required' | 'withoutDevice' | 'resources'>,
    Pick<PodChange, 'nodes'> {
  /** Warnings and information for the owner of the pod, which the extender announces in Events on the VMI. */
  readonly notes: readonly Finding[];
}

/** The messages contain names that tenants choose. */
const MAX_NOTES = 16;

/**
 * Text of the decision annotation; the same in a second pass, because it describes the final pod. A launcher that opts
 * in and has none was not seen by the webhook. The admission policy searches it for `"<container>":<CPUs>`.
 */
export function decisionText(text: DecisionText): string {
  const { stated: cpus, threadsPerCore, padding, unpadded, required, resources, withoutDevice, nodes, notes } = text;
  return JSON.stringify({
    ...(Object.keys(cpus).length > 0 ? { cpus, padding, threadsPerCore } : { padding: 0 }),
    unpadded,
    ...(resources.length > 0 && { networks: required.map(networkLine), resources }),
    ...(withoutDevice.length > 0 && { withoutDevice: withoutDevice.map(networkLine) }),
    nodes: nodes?.map(({ key, operator, values }) => `${key} ${operator} ${(values ?? []).join(',')}`),
    ...(notes.length > 0 && { notes: notes.slice(0, MAX_NOTES).map(noteOf) }),
  });
}

export const NOTHING_TO_DO: string = JSON.stringify({ padding: 0 });

/** The placement annotation; undefined if empty. @param required device resources of the required networks */
export function placementText(preferences: PlacementPreferences, required: readonly string[]): string | undefined {
  const matters = preferences.preferred.length > 0 || required.length > 0 || preferences.guestThreads > 1;
  return matters ? formatPreferences(preferences) : undefined;
}

const MAX_NOTE_CHARACTERS = 512;

function noteOf({ severity, reason, message }: Finding): Record<string, string> {
  const isWarning = severity !== 'information';
  return {
    type: isWarning ? 'Warning' : 'Normal',
    reason: reason ?? (isWarning ? 'LauncherNotAligned' : 'LauncherDecided'),
    message: cut(message, MAX_NOTE_CHARACTERS),
  };
}

function networkLine(resolved: ResolvedNetwork): Record<string, string> {
  const { name, network, kind } = resolved;
  return { interface: name, network, on: kind === 'physnet' ? `physnet ${resolved.physnet}` : kind };
}

export type Decided =
  /** The webhook added CPUs to fill whole cores. */
  | { readonly kind: 'padded'; readonly padding: number; readonly cpus: boolean }
  /** The webhook reviewed the pod; it needed no padding. */
  | { readonly kind: 'nothing-to-pad'; readonly padding: 0; readonly cpus: boolean }
  /** The pod asks for whole cores, and the webhook did not pad it. */
  | { readonly kind: 'not-padded'; readonly padding: 0; readonly cpus: false; readonly why: string };

export type DecidedKind = Decided['kind'];

const MAX_PADDING_CPUS = 4096;
/** It contains names of networks, which tenants choose. */
const MAX_DECISION_CHARACTERS = 100_000;

const decision = z.object({
  padding: z.number().int().positive().max(MAX_PADDING_CPUS).optional().catch(undefined),
  unpadded: z.string().optional().catch(undefined),
  cpus: z.unknown().optional(),
  withoutDevice: z.array(z.object({ on: z.string() })).catch([]),
});

/** Required networks without a device, because no node reported them when the webhook decided. */
export function networksWithoutDevice(metadata: Pick<MetaShape, 'annotations'>): readonly string[] {
  return [...new Set((readDecision(metadata)?.withoutDevice ?? []).map(({ on }) => on))];
}

function readDecision({ annotations }: Pick<MetaShape, 'annotations'>): z.infer<typeof decision> | undefined {
  const text = annotations?.[DECISION_ANNOTATION];
  if (text === undefined || text.length > MAX_DECISION_CHARACTERS) return undefined;
  return decision.safeParse(parseJson(text)).data;
}

/** Undefined if absent or malformed: the webhook has not decided. `cpus`: it lists the containers' final CPUs. */
export function decidedOf(metadata: Pick<MetaShape, 'annotations'>): Decided | undefined {
  const data = readDecision(metadata);
  if (data === undefined) return undefined;
  const { padding, unpadded } = data;
  if (unpadded !== undefined) return { kind: 'not-padded', padding: 0, cpus: false, why: unpadded };
  const cpus = data.cpus !== undefined;
  return padding === undefined ? { kind: 'nothing-to-pad', padding: 0, cpus } : { kind: 'padded', padding, cpus };
}

export function paddingOf(metadata: Pick<MetaShape, 'annotations'>): number {
  return decidedOf(metadata)?.padding ?? 0;
}
