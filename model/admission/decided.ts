import type { MetaShape } from '../launcher/shapes.ts';
import { DECISION_ANNOTATION } from '../names.ts';

/** What the webhook did about the CPUs of a pod, by its decision annotation. */
export type Decided =
  /** CPUs were added to fill whole cores. */
  | { readonly kind: 'padded'; readonly padding: number; readonly cpus: boolean }
  /** The webhook looked at the pod, and there was nothing to pad. */
  | { readonly kind: 'nothing-to-pad'; readonly padding: 0; readonly cpus: boolean }
  /** The pod asks for whole cores, and the webhook left it as it is. */
  | { readonly kind: 'not-padded'; readonly padding: 0; readonly cpus: false; readonly why: string };

export type DecidedKind = Decided['kind'];

/** CPUs of the largest host: more is no padding that the webhook would write. */
const MOST = 4096;
/** Characters of a decision that is read; the names of networks in it are a tenant's. */
const LONGEST = 100_000;

/**
 * Reads the decision annotation (`decisionText` writes it). Undefined: the webhook has not decided about the pod, since the
 * annotation is absent or is no decision. `cpus` says whether it names the CPUs that the containers end up with.
 */
export function decidedOf({ annotations }: Pick<MetaShape, 'annotations'>): Decided | undefined {
  const text = annotations?.[DECISION_ANNOTATION];
  if (text === undefined || text.length > LONGEST) return undefined;
  const decision = objectIn(text);
  if (decision === undefined) return undefined;
  const { padding, unpadded } = decision;
  if (typeof unpadded === 'string') return { kind: 'not-padded', padding: 0, cpus: false, why: unpadded };
  const cpus = decision['cpus'] !== undefined;
  if (typeof padding === 'number' && Number.isInteger(padding) && padding > 0 && padding <= MOST) {
    return { kind: 'padded', padding, cpus };
  }
  return { kind: 'nothing-to-pad', padding: 0, cpus };
}

/** CPUs that the webhook added to a pod to fill whole cores. */
export function paddingOf(metadata: Pick<MetaShape, 'annotations'>): number {
  return decidedOf(metadata)?.padding ?? 0;
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}
