import * as z from 'zod';
import { extenderVerdict } from '../../console/server/questions.ts';
import { cpuListText } from '../../model/amounts.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { RefusalKind, Refused } from '../../model/placement/verdict.ts';
import type { NodeGroup, SchedulerRefusal } from '../../model/vm-state/facts.ts';
import { askAddress, askInCluster } from '../extender/ask.ts';
import type { ClusterAccess } from '../support/cluster.ts';
import { CliError, EXIT } from '../support/exit-status.ts';
import { byName } from '../support/hosts.ts';
import { groupBy } from '../support/lists.ts';

/** The predicted result for the pod on one node. */
export type NodeOpinion = FitOpinion | RefusedOpinion;

interface FitOpinion {
  readonly node: string;
  readonly fits: true;
  /** The CPUs that the kubelet would assign; '' if not predicted. */
  readonly cpus: string;
  readonly numaNodes: readonly number[];
  /** Requests that would not be met. */
  readonly warnings: readonly string[];
}

export interface RefusedOpinion extends Omit<Refused, 'kind'> {
  readonly node: string;
  readonly kind: RefusalKind | SchedulerRefusal | 'not-predicted';
}

export const NOT_PREDICTED = 'not predicted: it may accept or refuse it';

/** The node passes without a prediction of its CPUs. @param why the reason, if it is known */
export function notPredicted(node: string, why: string): RefusedOpinion {
  return { node, fits: false, kind: 'not-predicted', text: NOT_PREDICTED, detail: why };
}

/** The predicted results and their source. */
export interface Opinions {
  readonly source: 'extender' | 'reports';
  readonly nodes: readonly NodeOpinion[];
  /** Limits of these predictions. */
  readonly notes: readonly string[];
}

const answer = z.object({ active: z.boolean(), nodes: z.array(extenderVerdict) });

export interface ExtenderChoice {
  /** --extender: its address; undefined: through the API server. */
  readonly extender?: string | undefined;
}

/** `away`: no extender answers in the pod of its scheduler. */
type Asked = { readonly opinions: Opinions } | { readonly whyNot: string; readonly away: boolean };

/**
 * Queries the extender about a pod. If it is not reachable through the API server, the result says why. An address from
 * the user must respond.
 * @param pod namespace/name
 * @throws CliError if the given address does not respond; KubeError
 */
export async function askExtender(cluster: ClusterAccess, pod: string, choice: ExtenderChoice): Promise<Asked> {
  if (choice.extender !== undefined) {
    const document = await askAddress(choice.extender, pod, cluster.requestTimeout);
    return { opinions: opinionsOf(document, choice.extender) };
  }
  const asked = await askInCluster(cluster, { pod });
  if ('missing' in asked) return { whyNot: asked.why, away: asked.missing === 'silent' };
  try {
    return { opinions: opinionsOf(asked.answer, 'the extender') };
  } catch (error) {
    if (error instanceof CliError) return { whyNot: error.message, away: true };
    throw error;
  }
}

function opinionsOf(document: unknown, who: string): Opinions {
  const found = answer.safeParse(document);
  if (!found.success) throw new CliError(EXIT.unreachable, `${who} did not answer as a Plumbline extender`);
  const { active, nodes } = found.data;
  const standby = 'a standby of the extender answered: it does not know the reservations of pods in flight';
  return { source: 'extender', nodes, notes: active ? [] : [standby] };
}

/**
 * Order of the groups: the easiest to fix first, then full nodes, then broken ones, and last those that were never
 * meant for the pod.
 */
const ORDER: readonly NodeGroup['kind'][] = [
  'fits',
  'not-predicted',
  'in-flight',
  'refused-by-kubelet',
  'refused-on-host',
  'short-of',
  'too-few-whole-cores',
  'too-few-cpus',
  'network-elsewhere',
  'no-common-node',
  'tied-by-init',
  'resources',
  'misaligned',
  'cannot-split',
  'may-not-span',
  'larger-than-cells',
  'too-large',
  'cpu-mask',
  'dpu',
  'polled-cpus',
  'stale-report',
  'no-report',
  'unpredictable',
  'not-ready',
  'cordoned',
  'hangs-kubelet',
  'split-reservation',
  'offline-threads',
  'uneven-cores',
  'no-exclusive-cpus',
  'dra-cpu',
  'tainted',
  'no-such-network',
  'unknown-node',
  'cordoned-and-more',
  'other',
  'not-selected',
];

/** Groups nodes by reason: a thousand nodes have only a few reasons. */
export function groupNodes(opinions: readonly NodeOpinion[]): NodeGroup[] {
  const keyOf = (opinion: NodeOpinion) =>
    opinion.fits ? `fits ${opinion.warnings.join()}` : `${opinion.kind} ${opinion.text}`;
  const groups = groupBy(opinions, keyOf);
  return [...groups.values()].map(groupOf).sort((a, b) => rank(a) - rank(b) || b.count - a.count);
}

const rank = ({ kind }: NodeGroup) => {
  const at = ORDER.indexOf(kind);
  return at < 0 ? ORDER.length : at;
};

function groupOf(list: readonly NodeOpinion[]): NodeGroup {
  const compare = byName<NodeOpinion>(({ node }) => node);
  const sorted = [...list].sort((a, b) => missingOf(a) - missingOf(b) || compare(a, b));
  const first = sorted[0]!;
  const nodes = sorted.map(({ node }) => node);
  if (first.fits) {
    const numa = first.numaNodes.join(',');
    const where = first.cpus === '' ? 'on shared CPUs' : `it would get ${cpuListText(first.cpus)} on NUMA node ${numa}`;
    const detail = first.warnings.length === 0 ? where : first.warnings.join('; ');
    const text = first.warnings.length === 0 ? 'could run it' : 'could run it, with warnings';
    const place = first.cpus === '' ? {} : { cpus: CpuSet.parse(first.cpus).toArray(), numaNodes: first.numaNodes };
    return { kind: 'fits', text, count: list.length, nodes, detail, ...place };
  }
  const { kind, text, detail, missing } = first;
  return { kind, text, count: list.length, nodes, detail, missing };
}

const missingOf = (one: NodeOpinion) => (one.fits ? 0 : (one.missing ?? Number.MAX_SAFE_INTEGER));
