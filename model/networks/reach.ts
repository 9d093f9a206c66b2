import type { CpuSet } from '../cpu-set.ts';

/** What of a node decides where its kubelet can put CPUs, whatever runs there. */
export interface NodeRooms {
  /** By NUMA node: the CPUs that pods can have there, in whole cores where only those are given. */
  readonly rooms: ReadonlyMap<number, number>;
  /** The topology manager's policy; '' where it is not known. */
  readonly alignment: string;
}

/** A required network, and where it is on the node. */
export interface Located {
  /** As messages name it. */
  readonly text: string;
  /** NUMA nodes; never empty. */
  readonly cells: CpuSet;
}

/** The CPUs that a pod asks for, and whether its guest sees the NUMA nodes that they span. */
export interface Guest {
  readonly cpus: number;
  readonly spansCells: boolean;
}

/** Why no free CPU on the node could bring the guest near all its networks. */
export interface OutOfReach {
  readonly reason: 'cannot-split' | 'may-not-span' | 'larger-than-cells';
  readonly text: string;
  /** CPUs that are too many; undefined where fewer would not help. */
  readonly excess?: number;
}

/**
 * Whether a node can ever bring a guest near all its required networks. It depends on the node's make alone, so the answer
 * is the same on an empty and on a full node.
 *
 * A guest of one cell has all its CPUs near every network: on NUMA nodes that they share, and that are large enough. A
 * guest that sees its NUMA nodes has some of its CPUs near each. Where the networks share a NUMA node the kubelet is led
 * there by their devices. Where they do not the devices contradict each other: `restricted` and `single-numa-node` refuse
 * the pod, and other policies choose freely. Then a guest is near all its networks for certain only if it is too large to
 * fit anywhere without touching each of them.
 */
export function outOfReach(guest: Guest, located: readonly Located[], node: NodeRooms): OutOfReach | undefined {
  const [first, ...rest] = located;
  if (first === undefined || guest.cpus === 0) return undefined;
  const shared = rest.reduce((common, { cells }) => common.intersect(cells), first.cells);
  if (!guest.spansCells) return shared.isEmpty ? apart(located) : tooLarge(guest, located, shared, node);
  return shared.isEmpty ? uncertain(guest, located, node) : undefined;
}

function apart(located: readonly Located[]): OutOfReach {
  return { reason: 'cannot-split', text: `the kubelet cannot split: ${places(located)}, which have none in common` };
}

function tooLarge(
  { cpus }: Guest,
  located: readonly Located[],
  shared: CpuSet,
  node: NodeRooms,
): OutOfReach | undefined {
  const room = roomOn(node, (cell) => shared.has(cell));
  if (cpus <= room) return undefined;
  const text = `${places(located)}, where pods can have ${room} CPUs at most, and ${cpus} are asked for`;
  return { reason: 'larger-than-cells', text, excess: cpus - room };
}

function uncertain({ cpus }: Guest, located: readonly Located[], node: NodeRooms): OutOfReach | undefined {
  if (node.alignment === 'restricted' || node.alignment === 'single-numa-node') {
    const why = `topologyManagerPolicy ${node.alignment} refuses a pod with devices on different NUMA nodes`;
    return { reason: 'cannot-split', text: `the kubelet cannot split: ${places(located)}; ${why}` };
  }
  const away = located.map(({ text, cells }) => ({ text, room: roomOn(node, (cell) => !cells.has(cell)) }));
  const widest = away.reduce((most, one) => (one.room > most.room ? one : most));
  if (cpus > widest.room) return undefined;
  const text =
    `the kubelet may put all ${cpus} CPUs away from ${widest.text}: ${places(located)}; ` +
    `only with more than ${widest.room} CPUs is the guest near all of them for certain`;
  return { reason: 'may-not-span', text };
}

function places(located: readonly Located[]): string {
  return located.map(({ text, cells }) => `${text} is on NUMA node ${cells}`).join(', ');
}

function roomOn({ rooms }: NodeRooms, counts: (cell: number) => boolean): number {
  return [...rooms].reduce((sum, [cell, room]) => (counts(cell) ? sum + room : sum), 0);
}
