import type { NodeItem } from './node.ts';
import { collator, type ListQuery, matcherOf } from './node-list.ts';
import { parseCpus } from './shape.ts';
import { GONE, MIGRATION_TARGET, type RunningEntry, type StateVerdict } from './wire.ts';

export type VmItem = ReturnType<typeof vmItem>;

type Containers = readonly (readonly [container: string, cpus: string, padding: number])[];

export type VmSort = keyof typeof VM_SORTS;
export type VmFilter = keyof typeof VM_FILTERS;

export type VmQuery = ListQuery<VmSort, VmFilter>;

export const BADNESS: readonly StateVerdict[] = ['ok', 'stopped', 'waiting', 'degraded', 'broken'];

const keyOf = (pod: string, node: string) => `${pod}@${node}`;

export function vmsOf(nodes: Iterable<NodeItem>, running: Iterable<RunningEntry>): VmItem[] {
  const entries = new Map([...running].map((entry) => [keyOf(entry[0], entry[1]), entry]));
  const vms: VmItem[] = [];
  const silent = new Map<string, string>();
  for (const node of nodes) {
    if (node.silentSince !== undefined) silent.set(node.name, node.silentSince);
    for (const vm of vmsOn(node)) {
      const entry = entries.get(vm.key);
      entries.delete(vm.key);
      vms.push(entry === undefined ? vm : vmItem(vm.name, vm.node, vm.containers, entry, vm.silentSince));
    }
  }
  for (const entry of entries.values()) vms.push(vmItem(entry[0], entry[1], [], entry, silent.get(entry[1])));
  return vms;
}

/** The owners of a node without their entries, which change apart. Age and end: an update of a node replaces its item. */
const ownersByNode = new WeakMap<NodeItem, readonly VmItem[]>();

function vmsOn(node: NodeItem): readonly VmItem[] {
  const cached = ownersByNode.get(node);
  if (cached !== undefined) return cached;
  const { name, owners, silentSince } = node;
  const pods = new Map<string, [string, string, number][]>();
  for (const [pod, container, cpus, padding] of owners) {
    if (pod.endsWith(GONE) || pod.endsWith(MIGRATION_TARGET)) continue;
    pods.set(pod, [...(pods.get(pod) ?? []), [container, cpus, padding]]);
  }
  const vms = [...pods].map(([pod, containers]) => vmItem(pod, name, containers, undefined, silentSince));
  ownersByNode.set(node, vms);
  return vms;
}

/** Mask and problem are '' if it has none. */
function vmItem(
  name: string,
  node: string,
  containers: Containers,
  entry: RunningEntry | undefined,
  silentSince: string | undefined,
) {
  const [, , mask = '', verdict = 'ok', reason = 'Aligned', text = '', remedies = []] = entry ?? [];
  return { key: keyOf(name, node), name, node, containers, mask, verdict, reason, text, remedies, silentSince };
}

export const needsAttention = ({ verdict }: Pick<VmItem, 'verdict'>) => BADNESS.indexOf(verdict) >= 3;

export const cpuCount = ({ containers }: VmItem): number =>
  containers.reduce((count, [, cpus]) => count + parseCpus(cpus).length, 0);

const byName = (a: VmItem, b: VmItem) => collator.compare(a.name, b.name);

export const VM_SORTS = {
  name: byName,
  node: (a: VmItem, b: VmItem) => collator.compare(a.node, b.node) || byName(a, b),
  cpus: (a: VmItem, b: VmItem) => cpuCount(a) - cpuCount(b) || byName(a, b),
  verdict: (a: VmItem, b: VmItem) => BADNESS.indexOf(a.verdict) - BADNESS.indexOf(b.verdict) || byName(b, a),
};

export const VM_FILTERS = {
  all: { title: 'All VMs', accepts: () => true },
  attention: { title: 'Need attention', accepts: needsAttention },
  mask: { title: 'With a CPU mask', accepts: ({ mask }: VmItem) => mask !== '' },
};

export function findVms(vms: readonly VmItem[], { text, sort, descending, filter }: VmQuery): VmItem[] {
  const matches = matcherOf(text, ({ name, node, reason, text: state }: VmItem) => [name, node, reason, state]);
  const order = VM_SORTS[sort];
  return vms
    .filter((vm) => VM_FILTERS[filter].accepts(vm) && matches(vm))
    .sort(descending ? (a, b) => order(b, a) : order);
}
