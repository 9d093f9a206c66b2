import type { Device } from '../../model/kubelet/devices.ts';
import { NODES } from '../api-server/built-in-types.ts';
import { timestamp } from '../api-server/preparation.ts';
import type { LocalClient } from '../clients/local-client.ts';
import type { Node } from '../objects.ts';
import { type NodeFacts, nodeLabels, nodeObject } from './node-object.ts';

/**
 * Creates the Node, or updates the existing one. Device resources without a plugin (the kubelet has restarted and the
 * plugin has not registered again) have no allocatable devices.
 * @param now ms since 1970
 */
export async function publishNode(
  client: LocalClient,
  facts: NodeFacts,
  devices: ReadonlyMap<string, readonly Device[]>,
  now: number,
): Promise<void> {
  const wanted = nodeObject(facts, devices, timestamp(now));
  const present = client.get(NODES, undefined, facts.name);
  if (!present) {
    await client.create(NODES, wanted);
    return;
  }
  await client.edit(NODES, present, (draft) => {
    draft.metadata.labels = { ...draft.metadata.labels, ...nodeLabels(facts) };
  });
  await client.edit(NODES, present, (draft) => bringUpToDate(draft, wanted), 'status');
}

function bringUpToDate(draft: Node, { status: wanted }: Node): void {
  const before = draft.status ?? {};
  const gone = Object.keys(before.allocatable ?? {}).filter((name) => wanted?.allocatable?.[name] === undefined);
  const conditions = (before.conditions ?? []).filter(({ type }) => type !== 'Ready');
  draft.status = {
    ...before,
    ...wanted,
    capacity: { ...before.capacity, ...wanted?.capacity },
    allocatable: { ...Object.fromEntries(gone.map((name) => [name, '0'])), ...wanted?.allocatable },
    conditions: [...conditions, ...(wanted?.conditions ?? [])],
  };
}
