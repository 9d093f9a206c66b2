import type { KubeClient } from '../../kube/client.ts';
import { lease } from '../../kube/resources.ts';
import { AGENT_LEASE_PREFIX } from '../../model/lease/agent-health.ts';
import { parseMicroTime } from '../../model/lease/timing.ts';
import { NAMESPACE } from '../../model/names.ts';
import { readIfAllowed } from './lists.ts';

/**
 * Seconds. The daemons detect silence with their own clock, over time; a command reads once and has only the lease's own
 * timestamp, so an agent counts as silent only after three times the lease's 40 s.
 */
const SILENT_AFTER = 120;

export interface AgentLeases {
  /** Seconds since each agent's last renewal, by node and by this machine's clock. */
  readonly ages: ReadonlyMap<string, number>;
  readonly silent: ReadonlySet<string>;
}

/** Undefined if the user may not read the leases. @throws KubeError */
export async function readAgentLeases(client: KubeClient, now: number): Promise<AgentLeases | undefined> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`;
  const leases = await readIfAllowed(client, path, lease);
  if (leases === undefined) return undefined;
  const ages = new Map<string, number>();
  for (const { metadata, spec } of leases) {
    const renewed = spec?.renewTime === undefined ? undefined : parseMicroTime(spec.renewTime);
    if (!metadata.name?.startsWith(AGENT_LEASE_PREFIX) || renewed === undefined) continue;
    ages.set(metadata.name.slice(AGENT_LEASE_PREFIX.length), now / 1000 - Number(renewed / 1_000_000n));
  }
  return { ages, silent: new Set([...ages].filter(([, age]) => age > SILENT_AFTER).map(([node]) => node)) };
}
