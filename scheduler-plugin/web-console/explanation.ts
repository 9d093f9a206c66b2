import { setImmediate as turn } from 'node:timers/promises';
import type { KubeClient } from '../../kube/client.ts';
import { readPod } from '../extender/explain.ts';
import type { Extender, NodeExplanation } from '../extender/extender.ts';

/** Why a pod waits, node by node, as the page shows it. */
export interface PodExplanation {
  readonly pod: string;
  /** RFC 3339. */
  readonly time: string;
  /** Verdicts that read alike: first what fits, then near misses, then nodes that were never meant for it. */
  readonly groups: readonly VerdictGroup[];
  /** `[node, number of its group, what is true of this node alone]` */
  readonly nodes: readonly (readonly [string, number, string])[];
}

export interface VerdictGroup {
  readonly fits: boolean;
  /** The reason as a stable word. */
  readonly kind: string;
  readonly text: string;
  readonly nodes: number;
  /** The least that any of these nodes is short of, in CPUs or whole cores as the node's own text says. */
  readonly missing: number | undefined;
}

export interface ExplanationSource {
  readonly extender: Pick<Extender, 'explain' | 'state'>;
  readonly client: Pick<KubeClient, 'get'>;
}

/** Nodes that are predicted between two turns of the event loop, so that the scheduler's calls go first. */
const SLICE = 20;

/** @throws ArgsError, NotNow, KubeError */
export async function explainPod(
  { extender, client }: ExplanationSource,
  name: string,
  signal: AbortSignal,
): Promise<PodExplanation> {
  const pod = await readPod(client, name);
  const { names } = extender.state.fleet;
  const known = [...extender.state.fleet.ids()].map((id) => names.nameOf(id) ?? '').sort();
  const groups = new Map<string, { -readonly [K in keyof VerdictGroup]: VerdictGroup[K] } & { number: number }>();
  const nodes: (readonly [string, number, string])[] = [];
  for (let at = 0; at < known.length && !signal.aborted; at += SLICE) {
    for (const explanation of extender.explain(pod, known.slice(at, at + SLICE))) {
      const { fits, kind, text, missing, detail } = worded(explanation);
      const group = groups.get(text) ?? { fits, kind, text, nodes: 0, missing, number: groups.size };
      groups.set(text, group);
      group.nodes++;
      if (missing !== undefined) group.missing = Math.min(group.missing ?? missing, missing);
      nodes.push([explanation.node, group.number, detail === text ? '' : detail]);
    }
    await turn();
  }
  const ordered = [...groups.values()].sort((a, b) => rank(a) - rank(b) || b.nodes - a.nodes);
  const place = new Map(ordered.map(({ number }, index) => [number, index]));
  return {
    pod: name,
    time: new Date().toISOString(),
    groups: ordered.map(({ number: _, ...group }) => group),
    nodes: nodes.map(([node, number, detail]) => [node, place.get(number) ?? 0, detail]),
  };
}

/** A node that is short of something is nearer than one that lacks the network, whatever their number. */
function rank({ fits, missing }: Pick<VerdictGroup, 'fits' | 'missing'>): number {
  if (fits) return 0;
  return missing === undefined ? 2 : 1;
}

function worded({ verdict }: NodeExplanation) {
  if (!verdict.fits) return verdict;
  const { score, cpus, cells, warnings } = verdict;
  const where = cpus === undefined ? 'its kubelet is not predicted' : `CPUs ${cpus} on NUMA node ${cells.join(', ')}`;
  const detail = [`score ${score}: ${where}`, ...warnings].join('; ');
  return { fits: true, kind: 'fits', text: 'would take it now', missing: undefined, detail };
}
