import { filteringTaints, selectsNode, type Taint, toleratesAll } from '../../model/launcher/node-selection.ts';
import type { KubeNode, KubePod } from '../objects.ts';
import { type Amounts, amountsOf } from '../pod-requests.ts';

/** Why a node does not fit. Unresolvable: evicting pods would not help. */
export interface Misfit {
  readonly reasons: readonly string[];
  readonly unresolvable: boolean;
}

export interface Load {
  readonly requested: Amounts;
  readonly pods: number;
}

const NOT_READY = 'node.kubernetes.io/not-ready';

/** The filters of the default profile up to the first that refuses. */
export function filterNode(pod: KubePod, requests: Amounts, node: KubeNode, load: Load): Misfit | undefined {
  const tolerated = (taint: Taint) => toleratesAll(pod.spec.tolerations, [taint]);
  if (!filteringTaints({ unschedulable: node.spec?.unschedulable }).every(tolerated)) {
    return { reasons: ['node(s) were unschedulable'], unresolvable: true };
  }
  const taint = filteringTaints({ taints: taintsOf(node) }).find((candidate) => !tolerated(candidate));
  if (taint) {
    return { reasons: [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`], unresolvable: true };
  }
  const { name, labels = {} } = node.metadata;
  if (!selectsNode(pod.spec, { name, label: (key) => labels[key] })) {
    return { reasons: ["node(s) didn't match Pod's node affinity/selector"], unresolvable: true };
  }
  return resourceMisfit(requests, node, load);
}

/** The taints of a node, including the one that the node lifecycle controller sets on a node that is not Ready. */
function taintsOf({ spec, status }: KubeNode) {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const taints = spec?.taints ?? [];
  return ready?.status === 'True' ? taints : [...taints, { key: NOT_READY, effect: 'NoSchedule' }];
}

function resourceMisfit(requests: Amounts, { status }: KubeNode, { requested, pods }: Load): Misfit | undefined {
  const allocatable = amountsOf(status?.allocatable);
  const reasons: string[] = [];
  let unresolvable = false;
  const allocatablePods = allocatable.get('pods');
  if (allocatablePods !== undefined && BigInt(pods + 1) * 1_000_000_000n > allocatablePods)
    reasons.push('Too many pods');
  for (const [name, amount] of requests) {
    if (amount === 0n) continue;
    const total = allocatable.get(name) ?? 0n;
    if (amount <= total - (requested.get(name) ?? 0n)) continue;
    reasons.push(`Insufficient ${name}`);
    if (amount > total) unresolvable = true;
  }
  return reasons.length > 0 ? { reasons, unresolvable } : undefined;
}
