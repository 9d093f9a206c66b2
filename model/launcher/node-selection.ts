import type { Optional } from '../shapes.ts';

export interface NodeRequirement {
  readonly key: string;
  /** In, NotIn, Exists, DoesNotExist, Gt or Lt. */
  readonly operator: string;
  readonly values?: Optional<readonly string[]>;
}

/** Requirements that must all hold. A term without any matches no node. */
export interface NodeTerm {
  readonly matchExpressions?: Optional<readonly NodeRequirement[]>;
  readonly matchFields?: Optional<readonly NodeRequirement[]>;
}

export interface SelectingSpec {
  readonly tolerations?: Optional<readonly Toleration[]>;
  readonly nodeSelector?: Optional<Readonly<Record<string, string>>>;
  readonly affinity?: Optional<{
    readonly nodeAffinity?: Optional<{
      readonly requiredDuringSchedulingIgnoredDuringExecution?: Optional<{
        readonly nodeSelectorTerms?: Optional<readonly NodeTerm[]>;
      }>;
    }>;
  }>;
}

export interface SelectableNode {
  readonly name: string;
  label(key: string): string | undefined;
}

/** Terms of the required node affinity, one of which must match; undefined if there is none. */
export function requiredTerms(spec: SelectingSpec): readonly NodeTerm[] | undefined {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required ? (required.nodeSelectorTerms ?? []) : undefined;
}

/** Without taints and free resources. Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity. */
export function selectsNode(spec: SelectingSpec, node: SelectableNode): boolean {
  for (const key in spec.nodeSelector) if (node.label(key) !== spec.nodeSelector[key]) return false;
  return requiredTerms(spec)?.some((term) => matchesTerm(term, node)) ?? true;
}

const NO_SELECTION = JSON.stringify([{}, undefined, []]);

/** A key that is equal for specs with the same selectors. */
export function selectionKey(spec: SelectingSpec): string {
  const { nodeSelector, tolerations } = spec;
  const terms = requiredTerms(spec);
  if (!nodeSelector && terms === undefined && !tolerations) return NO_SELECTION;
  return JSON.stringify([nodeSelector ?? {}, terms, tolerations ?? []]);
}

function matchesTerm({ matchExpressions, matchFields }: NodeTerm, node: SelectableNode): boolean {
  const [expressions, fields] = [matchExpressions ?? [], matchFields ?? []];
  if (expressions.length + fields.length === 0) return false;
  if (!fields.every((field) => field.key === 'metadata.name' && matchesValue(field, node.name))) return false;
  return expressions.every((expression) => matchesValue(expression, node.label(expression.key)));
}

/** The operators Gt and Lt are only for nodes. */
export function matchesValue({ operator, values }: NodeRequirement, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && (values ?? []).includes(value);
    case 'NotIn':
      return value === undefined || !(values ?? []).includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
    case 'Lt': {
      const [have, bound] = [wholeNumber(value), wholeNumber(values?.[0])];
      if (have === undefined || bound === undefined) return false;
      return operator === 'Gt' ? have > bound : have < bound;
    }
    default:
      return false;
  }
}

function wholeNumber(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?[0-9]{1,19}$/.test(text) ? BigInt(text) : undefined;
}

/** Source: k8s.io/api/core/v1, Taint. */
export interface Taint {
  readonly key: string;
  readonly value?: Optional<string>;
  /** NoSchedule, PreferNoSchedule or NoExecute. */
  readonly effect: string;
}

/** Source: k8s.io/api/core/v1, Toleration. */
interface Toleration {
  readonly key?: Optional<string>;
  /** Equal (also if absent) or Exists. */
  readonly operator?: Optional<string>;
  readonly value?: Optional<string>;
  /** Absent: all effects. */
  readonly effect?: Optional<string>;
}

/** kube-scheduler treats a cordoned node as if it had this taint. Source: plugins/nodeunschedulable. */
export const CORDON: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** Further ones are ignored. */
const MAX_TAINTS = 128;

/** The taints that kube-scheduler filters by, including a cordon. */
export function filteringTaints(spec: {
  readonly unschedulable?: Optional<boolean>;
  readonly taints?: Optional<readonly Taint[]>;
}): readonly Taint[] {
  const taints = (spec.taints ?? []).filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute');
  const cordoned = spec.unschedulable === true && !taints.some(({ key }) => key === CORDON.key);
  return [...(cordoned ? [CORDON] : []), ...taints].slice(0, MAX_TAINTS);
}

/** Source: kube-scheduler's plugins/tainttoleration. */
export function toleratesAll(tolerations: Optional<readonly Toleration[]>, taints: readonly Taint[]): boolean {
  const some = (tolerations ?? []).slice(0, MAX_TAINTS);
  return taints.every((taint) => some.some((toleration) => tolerates(toleration, taint)));
}

function tolerates({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if (effect && effect !== taint.effect) return false;
  if (operator === 'Exists') return !key || key === taint.key;
  return key === taint.key && (!operator || operator === 'Equal') && (value ?? '') === (taint.value ?? '');
}
