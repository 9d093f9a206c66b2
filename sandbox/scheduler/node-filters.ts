import type { Node, Pod, SelectorTerm, Toleration } from '../objects.ts';
import { type Amounts, amountsOf } from '../pod-requests.ts';

/** Why a node does not fit. Unresolvable: evicting pods would not help. */
export interface Misfit {
  readonly reasons: readonly string[];
  readonly unresolvable: boolean;
}

/** Requested amounts and number of the pods on a node. */
export interface Load {
  readonly requested: Amounts;
  readonly pods: number;
}

const NOT_READY = 'node.kubernetes.io/not-ready';

/**
 * Runs the relevant filters of the default profile, in its order, up to the first that refuses.
 * @param ignored extended resources that an extender accounts for, or that do not count
 * @returns undefined if the node fits
 */
export function filterNode(
  pod: Pod,
  wanted: Amounts,
  node: Node,
  load: Load,
  ignored: ReadonlySet<string>,
): Misfit | undefined {
  const tolerations = pod.spec.tolerations ?? [];
  const cordon = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };
  if (node.spec?.unschedulable && !tolerates(tolerations, cordon)) {
    return { reasons: ['node(s) were unschedulable'], unresolvable: true };
  }
  const taint = taintsOf(node).find(
    (candidate) => candidate.effect !== 'PreferNoSchedule' && !tolerates(tolerations, candidate),
  );
  if (taint) {
    return { reasons: [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`], unresolvable: true };
  }
  if (!matchesAffinity(pod, node)) {
    return { reasons: ["node(s) didn't match Pod's node affinity/selector"], unresolvable: true };
  }
  return resourceMisfit(wanted, node, load, ignored);
}

/** The taints of a node, including the one that the node lifecycle controller sets on a node that is not Ready. */
function taintsOf({ spec, status }: Node) {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const taints = spec?.taints ?? [];
  return ready?.status === 'True' ? taints : [...taints, { key: NOT_READY, effect: 'NoSchedule' }];
}

function tolerates(
  tolerations: readonly Toleration[],
  taint: { key: string; value?: string; effect: string },
): boolean {
  return tolerations.some(
    ({ key, operator, value, effect }) =>
      (!effect || effect === taint.effect) &&
      (!key
        ? operator === 'Exists'
        : key === taint.key && (operator === 'Exists' || (value ?? '') === (taint.value ?? ''))),
  );
}

function matchesAffinity({ spec }: Pod, { metadata }: Node): boolean {
  const labels = metadata.labels ?? {};
  if (Object.entries(spec.nodeSelector ?? {}).some(([key, value]) => labels[key] !== value)) return false;
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms === undefined || terms.some((term) => matchesTerm(term, labels, metadata.name));
}

/** An empty term matches nothing. */
function matchesTerm(term: SelectorTerm, labels: Readonly<Record<string, string>>, name: string): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every(({ key, operator, values = [] }) => holds(labels[key], operator, values)) &&
    matchFields.every(({ key, operator, values = [] }) => key === 'metadata.name' && holds(name, operator, values))
  );
}

function holds(actual: string | undefined, operator: string, values: readonly string[]): boolean {
  switch (operator) {
    case 'In':
      return actual !== undefined && values.includes(actual);
    case 'NotIn':
      return actual === undefined || !values.includes(actual);
    case 'Exists':
      return actual !== undefined;
    case 'DoesNotExist':
      return actual === undefined;
    case 'Gt':
      return actual !== undefined && Number(actual) > Number(values[0]);
    case 'Lt':
      return actual !== undefined && Number(actual) < Number(values[0]);
    default:
      return false;
  }
}

function resourceMisfit(
  wanted: Amounts,
  { status }: Node,
  { requested, pods }: Load,
  ignored: ReadonlySet<string>,
): Misfit | undefined {
  const allocatable = amountsOf(status?.allocatable);
  const reasons: string[] = [];
  let unresolvable = false;
  const places = allocatable.get('pods');
  if (places !== undefined && BigInt(pods + 1) * 1_000_000_000n > places) reasons.push('Too many pods');
  for (const [name, amount] of wanted) {
    if (amount === 0n || ignored.has(name)) continue;
    const total = allocatable.get(name) ?? 0n;
    if (amount <= total - (requested.get(name) ?? 0n)) continue;
    reasons.push(`Insufficient ${name}`);
    if (amount > total) unresolvable = true;
  }
  return reasons.length > 0 ? { reasons, unresolvable } : undefined;
}

/** NodeResourcesFit's LeastAllocated over cpu and memory: 0 (full) to 100 (idle), rounded down. */
export function leastAllocated(wanted: Amounts, { status }: Node, { requested }: Load): number {
  const allocatable = amountsOf(status?.allocatable);
  let sum = 0;
  let counted = 0;
  for (const name of ['cpu', 'memory']) {
    const total = allocatable.get(name) ?? 0n;
    if (total === 0n) continue;
    const used = (requested.get(name) ?? 0n) + (wanted.get(name) ?? 0n);
    sum += used > total ? 0 : Number(((total - used) * 100n) / total);
    counted++;
  }
  return counted === 0 ? 0 : Math.floor(sum / counted);
}
