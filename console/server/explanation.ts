import * as z from 'zod';
import type { RefusalKind } from '../../model/placement/verdict.ts';
import type { Explanation, VerdictGroup } from '../data/wire.ts';

/** The extender's verdict about one node, in its response to `GET /explain?pod=`. */
export const extenderVerdict = z.union([
  z.object({
    node: z.string(),
    fits: z.literal(true),
    score: z.number().optional(),
    cpus: z.string(),
    numaNodes: z.array(z.number()),
    warnings: z.array(z.string()).default([]),
  }),
  z.object({
    node: z.string(),
    fits: z.literal(false),
    kind: z.string().transform((kind) => kind as RefusalKind),
    text: z.string(),
    reason: z.string(),
    missing: z.number().optional(),
  }),
]);
type Verdict = z.infer<typeof extenderVerdict>;

const answer = z.object({
  reservation: z.object({ kind: z.string(), nodes: z.record(z.string(), z.string()) }).nullish(),
  nodes: z.array(extenderVerdict),
  decisions: z.array(z.object({ time: z.string(), offered: z.number(), passed: z.number() })).default([]),
});

/**
 * Groups the extender's response to `GET /explain?pod=`.
 * @param now milliseconds since 1970
 * @returns undefined if the document is not a response of an extender
 */
export function explanationOf(pod: string, document: unknown, now: number): Explanation | undefined {
  const found = answer.safeParse(document);
  if (!found.success) return undefined;
  const { reservation, decisions } = found.data;
  const groups = new Map<string, { -readonly [K in keyof VerdictGroup]: VerdictGroup[K] } & { number: number }>();
  const nodes = found.data.nodes.map((one) => {
    const { fits, kind, text, missing, detail } = worded(one);
    const group = groups.get(text) ?? { fits, kind, text, nodes: 0, missing, number: groups.size };
    groups.set(text, group);
    group.nodes++;
    if (missing !== undefined) group.missing = Math.min(group.missing ?? missing, missing);
    return [one.node, group.number, detail === text ? '' : detail] as const;
  });
  const ordered = [...groups.values()].sort((a, b) => rank(a) - rank(b) || b.nodes - a.nodes);
  const place = new Map(ordered.map(({ number }, index) => [number, index]));
  return {
    pod,
    time: new Date(now).toISOString(),
    reserved: reservation?.kind === 'tentative' ? Object.keys(reservation.nodes) : [],
    lastCall: decisions.at(-1),
    groups: ordered.map(({ number: _, ...group }) => group),
    nodes: nodes
      .map(([node, number, detail]) => [node, place.get(number) ?? 0, detail] as const)
      .sort(([a], [b]) => Number(a > b) - Number(a < b)),
  };
}

/** Order of groups. A node with a shortage is closer than one without the network, whatever their number. */
function rank({ fits, missing }: Pick<VerdictGroup, 'fits' | 'missing'>): number {
  if (fits) return 0;
  return missing === undefined ? 2 : 1;
}

function worded(one: Verdict) {
  if (!one.fits) return { ...one, detail: one.reason };
  const { score, cpus, numaNodes, warnings } = one;
  const where = cpus === '' ? 'its kubelet cannot be predicted' : `CPUs ${cpus} on NUMA node ${numaNodes.join(', ')}`;
  const detail = [`score ${score ?? '?'}: ${where}`, ...warnings].join('; ');
  return { fits: true, kind: 'fits', text: 'would take it now', missing: undefined, detail };
}
