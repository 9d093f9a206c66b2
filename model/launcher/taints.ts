/** A node's taint. Source: k8s.io/api/core/v1, Taint. */
export interface Taint {
  readonly key: string;
  readonly value?: string | null | undefined;
  /** NoSchedule, PreferNoSchedule or NoExecute. */
  readonly effect: string;
}

/** Allows a pod on a node despite its taint. Source: k8s.io/api/core/v1, Toleration. */
export interface Toleration {
  readonly key?: string | null | undefined;
  /** Equal (also if absent) or Exists. */
  readonly operator?: string | null | undefined;
  readonly value?: string | null | undefined;
  /** Absent: all effects. */
  readonly effect?: string | null | undefined;
}

/** kube-scheduler treats a cordoned node as if it had this taint. Source: plugins/nodeunschedulable. */
export const CORDON: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** Largest number of a node's taints and of a pod's tolerations that are checked; further ones are ignored. */
const MOST = 128;

/** The taints that kube-scheduler filters by, including a cordon. */
export function filteringTaints(spec: {
  readonly unschedulable?: boolean | null | undefined;
  readonly taints?: readonly Taint[] | null | undefined;
}): readonly Taint[] {
  const taints = (spec.taints ?? []).filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute');
  const cordoned = spec.unschedulable === true && !taints.some(({ key }) => key === CORDON.key);
  return [...(cordoned ? [CORDON] : []), ...taints].slice(0, MOST);
}

/**
 * Whether a pod with these tolerations can be scheduled to a node with these taints. Source: plugins/tainttoleration.
 */
export function toleratesAll(tolerations: readonly Toleration[] | null | undefined, taints: readonly Taint[]): boolean {
  const some = (tolerations ?? []).slice(0, MOST);
  return taints.every((taint) => some.some((one) => tolerates(one, taint)));
}

function tolerates({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if ((effect ?? '') !== '' && effect !== taint.effect) return false;
  const exists = operator === 'Exists';
  if ((key ?? '') === '') return exists;
  if (key !== taint.key) return false;
  return exists || ((operator ?? '') === '' || operator === 'Equal' ? (value ?? '') === (taint.value ?? '') : false);
}
