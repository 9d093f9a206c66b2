import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { byName } from '../../model/lists.ts';
import type { ListKind } from './list.ts';
import type { NodeItem } from './node.ts';
import type { PodItem } from './store.ts';
import { GONE, MIGRATION_TARGET, type RunningEntry, type StateVerdict } from './wire.ts';

export type VmItem = ReturnType<typeof vmItem>;

const BADNESS: readonly StateVerdict[] = ['ok', 'stopped', 'waiting', 'degraded', 'broken'];

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
  containers: readonly (readonly [container: string, cpus: string, padding: number])[],
  entry: RunningEntry | undefined,
  silentSince: string | undefined,
) {
  const [, , mask = '', verdict = 'ok', reason = 'Aligned', text = '', remedies = []] = entry ?? [];
  return { key: keyOf(name, node), name, node, containers, mask, verdict, reason, text, remedies, silentSince };
}

export const needsAttention = ({ verdict }: Pick<VmItem, 'verdict'>) => BADNESS.indexOf(verdict) >= 3;

/** Of VMs whose CPUs were read: lists of many are sorted by them. Age and end: those of the item. */
const cpusByVm = new WeakMap<VmItem, CpuSet>();

/** Of all its containers. */
export function dedicatedCpus(vm: VmItem): CpuSet {
  const cpus = cpusByVm.get(vm) ?? unionOf(vm.containers.map(([, list]) => CpuSet.parse(list)));
  cpusByVm.set(vm, cpus);
  return cpus;
}

const byVm = byName<VmItem>(({ name }) => name);
const byNode = byName<VmItem>(({ node }) => node);

export const VM_LIST: ListKind<VmItem, 'name' | 'node' | 'cpus' | 'verdict', 'all' | 'attention' | 'mask'> = {
  sorts: {
    name: byVm,
    node: (a, b) => byNode(a, b) || byVm(a, b),
    cpus: (a, b) => dedicatedCpus(a).size - dedicatedCpus(b).size || byVm(a, b),
    verdict: (a, b) => BADNESS.indexOf(a.verdict) - BADNESS.indexOf(b.verdict) || byVm(b, a),
  },
  filters: {
    all: { title: 'All VMs', accepts: () => true },
    attention: { title: 'Need attention', accepts: needsAttention },
    mask: { title: 'With a CPU mask', accepts: ({ mask }) => mask !== '' },
  },
  usual: { text: '', sort: 'verdict', descending: true, filter: 'all' },
  textsOf: ({ name, node, reason, text }) => [name, node, reason, text],
};

export const isBroken = ({ verdict }: PodItem) => verdict === 'broken';
const badness = ({ verdict = 'waiting' }: PodItem) => BADNESS.indexOf(verdict);

const byNamespace = byName<PodItem>(({ namespace }) => namespace);
const byOwnName = byName<PodItem>(({ vm, name }) => vm ?? name);
const byPodName = (a: PodItem, b: PodItem) => byNamespace(a, b) || byOwnName(a, b);

/** Without a time: it has been on its node for less time than the others wait, so its time is after every year. */
const sinceOf = ({ since = '9999' }: PodItem) => since;
const byAge = (a: PodItem, b: PodItem) => sinceOf(b).localeCompare(sinceOf(a)) || byPodName(b, a);

/** Ascending: the least urgent, the shortest wait. */
export const WAITING_LIST: ListKind<PodItem, 'name' | 'since' | 'verdict', 'all' | 'broken' | 'vms'> = {
  sorts: { name: byPodName, since: byAge, verdict: (a, b) => badness(a) - badness(b) || byAge(a, b) },
  filters: {
    all: { title: 'All waiting', accepts: () => true },
    broken: { title: 'Need attention', accepts: isBroken },
    vms: { title: 'VMs only', accepts: ({ vm }) => vm !== undefined },
  },
  usual: { text: '', sort: 'verdict', descending: true, filter: 'all' },
  textsOf({ namespace, name, vm = '', node = '', nominated = '', networks, reason = '', text = '' }) {
    return [`${namespace}/${vm}`, name, node, nominated, ...networks.map(([network]) => network), reason, text];
  },
};
