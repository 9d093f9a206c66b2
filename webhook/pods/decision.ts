import type { NodeRequirement } from '../../model/launcher/node-selection.ts';
import type { ResolvedNetwork } from '../../model/networks/resolve.ts';
import type { PodChange } from './patch.ts';

/** One container that gets more CPUs than it had. */
export interface Padding {
  readonly container: string;
  readonly from: number;
  readonly to: number;
  readonly threadsPerCore: number;
}

/** Everything that was decided about one pod. */
export interface PodDecision {
  readonly change: PodChange;
  readonly padded: readonly Padding[];
  /** Any of them refuses the pod. */
  readonly refusals: readonly Refusal[];
  readonly warnings: readonly string[];
}

export interface Refusal {
  /** HTTP status. */
  readonly code: number;
  readonly message: string;
}

export interface DecisionText {
  /** CPUs by container, as they end up; empty where Plumbline answers for none. */
  readonly cpus: Readonly<Record<string, number>>;
  readonly threadsPerCore: number | undefined;
  readonly padding: number;
  readonly networks: readonly ResolvedNetwork[];
  readonly resources: readonly string[];
  readonly nodes: readonly NodeRequirement[] | undefined;
}

/**
 * The text of the decision annotation, for people who look at the pod. It describes the pod as it ends up, never the
 * change: so a second pass writes the same. Undefined where Plumbline gave the pod nothing, so that a value a tenant
 * put there is removed. The admission policy that checks the outcome looks in it for `"<container>":<CPUs>`.
 */
export function decisionText(text: DecisionText): string | undefined {
  const { cpus, threadsPerCore, padding, networks, resources, nodes } = text;
  const answers = Object.keys(cpus).length > 0;
  if (!answers && resources.length === 0 && nodes === undefined) return undefined;
  return JSON.stringify({
    ...(answers ? { cpus, padding, threadsPerCore } : {}),
    ...(resources.length === 0 ? {} : { networks: networks.filter(isRequired).map(describe), resources }),
    ...(nodes === undefined ? {} : { nodes: nodes.map(inWords) }),
  });
}

function inWords({ key, operator, values }: NodeRequirement): string {
  return `${key} ${operator} ${(values ?? []).join(',')}`;
}

function isRequired({ affinity }: ResolvedNetwork): boolean {
  return affinity === 'required';
}

function describe(one: ResolvedNetwork): Record<string, string> {
  return {
    interface: one.name,
    network: one.network,
    on: one.kind === 'physnet' ? `physnet ${one.physnet}` : one.kind,
  };
}
