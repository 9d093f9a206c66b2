import { CpuSet } from '../../model/cpu-set.ts';
import type { NodeGroup } from '../../model/vm-state/facts.ts';
import { byName } from '../support/name-order.ts';
import type { NodeOpinion } from './opinion.ts';

/**
 * Order of the groups: the easiest to fix first, then full nodes, then broken ones, and last those that were never
 * meant for the pod.
 */
const ORDER: readonly NodeGroup['kind'][] = [
  'fits',
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
  const groups = new Map<string, NodeOpinion[]>();
  for (const one of opinions) {
    const key = one.fits ? `fits ${one.warnings.join()}` : `${one.kind} ${one.text}`;
    const list = groups.get(key);
    if (list) list.push(one);
    else groups.set(key, [one]);
  }
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
    const where = first.cpus === '' ? 'not predicted where' : `it would get CPUs ${first.cpus} on NUMA node ${numa}`;
    const detail = first.warnings.length === 0 ? where : first.warnings.join('; ');
    const text = first.warnings.length === 0 ? 'would take it' : 'would take it, with warnings';
    const place = first.cpus === '' ? {} : { cpus: CpuSet.parse(first.cpus).toArray(), numaNodes: first.numaNodes };
    return { kind: 'fits', text, count: list.length, nodes, detail, ...place };
  }
  const { kind, text, detail, missing } = first;
  return { kind, text, count: list.length, nodes, detail, missing };
}

const missingOf = (one: NodeOpinion) => (one.fits ? 0 : (one.missing ?? Number.MAX_SAFE_INTEGER));
