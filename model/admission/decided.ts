import * as z from 'zod';
import { parseJson } from '../json.ts';
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
const MAX_PADDING = 4096;
/** Characters of a decision. It contains names of networks, which tenants choose. */
const MAX_DECISION_CHARACTERS = 100_000;

const decision = z.object({
  padding: z.number().int().positive().max(MAX_PADDING).optional().catch(undefined),
  unpadded: z.string().optional().catch(undefined),
  cpus: z.unknown().optional(),
});

/**
 * Parses the decision annotation, which `decisionText` writes. Undefined if the annotation is absent or malformed: the
 * webhook has not decided about the pod. `cpus` is true if the decision lists the final CPUs of the containers.
 */
export function decidedOf({ annotations }: Pick<MetaShape, 'annotations'>): Decided | undefined {
  const text = annotations?.[DECISION_ANNOTATION];
  if (text === undefined || text.length > MAX_DECISION_CHARACTERS) return undefined;
  const { data } = decision.safeParse(parseJson(text));
  if (data === undefined) return undefined;
  const { padding, unpadded } = data;
  if (unpadded !== undefined) return { kind: 'not-padded', padding: 0, cpus: false, why: unpadded };
  const cpus = data.cpus !== undefined;
  return padding === undefined ? { kind: 'nothing-to-pad', padding: 0, cpus } : { kind: 'padded', padding, cpus };
}

/** Number of CPUs that the webhook added to a pod to fill whole cores. */
export function paddingOf(metadata: Pick<MetaShape, 'annotations'>): number {
  return decidedOf(metadata)?.padding ?? 0;
}
