import type { NodeRequirement } from '../launcher/node-selection.ts';
import type { ResolvedNetwork } from '../networks/resolve.ts';
import { formatPreferences, type PlacementPreferences } from '../placement/preferences.ts';

export interface DecisionText {
  /** CPUs by container, as they end up; empty where Plumbline answers for none. */
  readonly cpus: Readonly<Record<string, number>>;
  readonly threadsPerCore: number | undefined;
  readonly padding: number;
  /** Why the pod keeps its CPUs although it asks for whole cores; undefined where it does not, or has them. */
  readonly unpadded?: string | undefined;
  /** The networks that the pod is held to, and their device resources. */
  readonly networks: readonly ResolvedNetwork[];
  readonly resources: readonly string[];
  readonly nodes: readonly NodeRequirement[] | undefined;
}

/**
 * The text of the decision annotation, for people who look at the pod. It describes the pod as it ends up, never the
 * change: so a second pass writes the same. Every launcher that the webhook decides about has one, with `padding` 0 where there
 * was nothing to pad: so a launcher that asks for something and has none was not seen by the webhook. It replaces what a
 * tenant put there. The admission policy that checks the outcome looks in it for `"<container>":<CPUs>`.
 */
export function decisionText(text: DecisionText): string {
  const { cpus, threadsPerCore, padding, unpadded, networks, resources, nodes } = text;
  const answers = Object.keys(cpus).length > 0;
  return JSON.stringify({
    ...(answers ? { cpus, padding, threadsPerCore } : { padding: 0 }),
    ...(unpadded === undefined ? {} : { unpadded }),
    ...(resources.length === 0 ? {} : { networks: networks.map(describe), resources }),
    ...(nodes === undefined ? {} : { nodes: nodes.map(inWords) }),
  });
}

/** The decision about a launcher that asks for nothing. */
export const NOTHING_TO_DO: string = JSON.stringify({ padding: 0 });

/**
 * The text of the placement annotation, which the extender reads; undefined where no network matters.
 * @param required device resources of the networks that the pod is held to
 */
export function placementText(preferences: PlacementPreferences, required: readonly string[]): string | undefined {
  return preferences.preferred.length > 0 || required.length > 0 ? formatPreferences(preferences) : undefined;
}

/** A node requirement as text: `key In a,b`. */
export function inWords({ key, operator, values }: NodeRequirement): string {
  return `${key} ${operator} ${(values ?? []).join(',')}`;
}

function describe(one: ResolvedNetwork): Record<string, string> {
  return {
    interface: one.name,
    network: one.network,
    on: one.kind === 'physnet' ? `physnet ${one.physnet}` : one.kind,
  };
}
