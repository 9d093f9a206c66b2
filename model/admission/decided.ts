import type { MetaShape } from '../launcher/shapes.ts';
import { DECISION_ANNOTATION } from '../names.ts';

/** The webhook's CPU decision about a pod, from the decision annotation. */
export type Decided =
  /** The webhook added CPUs to fill whole cores. */
  | { readonly kind: 'padded'; readonly padding: number; readonly cpus: boolean }
  /** The webhook reviewed the pod; it needed no padding. */
  | { readonly kind: 'nothing-to-pad'; readonly padding: 0; readonly cpus: boolean }
  /** The pod asks for whole cores, and the webhook did not pad it. */
  | { readonly kind: 'not-padded'; readonly padding: 0; readonly cpus: false; readonly why: string };

export type DecidedKind = Decided['kind'];

/** CPUs of the largest host. A larger padding cannot come from the webhook. */
const MOST = 4096;
/** Characters of a decision. It contains names of networks, which tenants choose. */
const LONGEST = 100_000;

/**
 * Parses the decision annotation, which `decisionText` writes. Undefined if the annotation is absent or malformed: the
 * webhook has not decided about the pod. `cpus` is true if the decision lists the final CPUs of the containers.
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

/** Number of CPUs that the webhook added to a pod to fill whole cores. */
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
