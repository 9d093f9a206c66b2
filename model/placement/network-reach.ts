import type { CpuSet } from '../cpu-set.ts';
import { type Host, wholeCoresWithin } from '../host.ts';
import { lastingCpus } from '../kubelet/pod-request.ts';
import { type NodeRooms, outOfReach } from '../networks/reach.ts';
import { cellsOfNetwork, networkText, type PlacementHost, type PlacementNeeds } from './needs.ts';
import { type Refusal, refusal } from './refusal.ts';

/** Why no CPU that becomes free on the node could place the pod near all its required networks. */
export function unfitForNetworks(needs: PlacementNeeds, node: PlacementHost): Refusal | undefined {
  const located = needs.networks.flatMap((need) => {
    const cells = need.affinity === 'required' ? cellsOfNetwork(node.networks, need) : undefined;
    return cells && !cells.isEmpty ? [{ text: networkText(need), cells }] : [];
  });
  if (located.length === 0) return undefined;
  const guest = { cpus: lastingCpus(needs.request), spansCells: needs.spansCells ?? false };
  const wholeCores = needs.wholeCores || node.wholeCoresOnly;
  const rooms = roomsOf(node.host, node.reserved, wholeCores);
  const found = outOfReach(guest, located, { rooms, alignment: node.alignment });
  if (found === undefined) return undefined;
  const { reason, text, excess } = found;
  const counts = excess === undefined ? {} : { wanted: guest.cpus, available: guest.cpus - excess };
  return refusal(reason, text, { resource: 'network', ...counts });
}

/** By NUMA node: number of CPUs that pods can have there on an empty node. */
export function roomsOf(host: Host, reserved: CpuSet, wholeCores: boolean): NodeRooms['rooms'] {
  const free = host.online.minus(reserved);
  const usable = wholeCores ? wholeCoresWithin(host, free) : free;
  return new Map(host.cells.map(({ id, cpus }) => [id, cpus.intersect(usable).size]));
}
