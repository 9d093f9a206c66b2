import type { NodeItem } from './node.ts';
import type { ListQuery } from './node-list.ts';
import { parseCpus } from './shape.ts';
import type { RunningEntry, Verdict } from './wire.ts';

/** A VM or pod that runs on one node with dedicated CPUs or a CPU mask. */
export interface VmItem {
  /** Unique: a VM that migrates is on two nodes. */
  readonly key: string;
  /** namespace/name */
  readonly name: string;
  readonly node: string;
  /** Its dedicated CPUs as CPU lists, by container. */
  readonly containers: readonly (readonly [container: string, cpus: string, padding: number])[];
  /** '' if it has none. */
  readonly mask: string;
  readonly verdict: Verdict;
  readonly reason: string;
  /** Its problem; '' if it has none. */
  readonly text: string;
}

export type VmSort = 'name' | 'node' | 'cpus' | 'verdict';
export type VmFilter = 'all' | 'attention' | 'mask';

export type VmQuery = ListQuery<VmSort, VmFilter>;

const BADNESS: readonly Verdict[] = ['ok', 'stopped', 'waiting', 'degraded', 'broken'];

/** All running VMs, from the owners in the nodes' records and the records of single VMs. */
export function vmsOf(nodes: Iterable<NodeItem>, running: Iterable<RunningEntry>): VmItem[] {
  const said = new Map<string, RunningEntry>();
  for (const entry of running) said.set(keyOf(entry[0], entry[1]), entry);
  const vms: VmItem[] = [];
  for (const { name: node, owners } of nodes) {
    const pods = new Map<string, [string, string, number][]>();
    for (const [pod, container, cpus, padding] of owners) {
      const known = pods.get(pod);
      if (known) known.push([container, cpus, padding]);
      else pods.set(pod, [[container, cpus, padding]]);
    }
    for (const [pod, containers] of pods) {
      const key = keyOf(pod, node);
      vms.push(item(key, pod, node, containers, said.get(key)));
      said.delete(key);
    }
  }
  for (const [key, entry] of said) vms.push(item(key, entry[0], entry[1], [], entry));
  return vms;
}

const keyOf = (pod: string, node: string) => `${pod}@${node}`;

function item(
  key: string,
  name: string,
  node: string,
  containers: VmItem['containers'],
  entry: RunningEntry | undefined,
): VmItem {
  const [, , mask = '', verdict = 'ok', reason = 'Aligned', text = ''] = entry ?? [];
  return { key, name, node, containers, mask, verdict, reason, text };
}

export const needsAttention = ({ verdict }: Pick<VmItem, 'verdict'>) => BADNESS.indexOf(verdict) >= 3;

/** Number of dedicated CPUs of all containers. */
export const cpuCount = ({ containers }: VmItem): number =>
  containers.reduce((count, [, cpus]) => count + parseCpus(cpus).length, 0);

const collator = new Intl.Collator('en', { numeric: true });
const byName = (a: VmItem, b: VmItem) => collator.compare(a.name, b.name);

const ORDERS: Readonly<Record<VmSort, (a: VmItem, b: VmItem) => number>> = {
  name: byName,
  node: (a, b) => collator.compare(a.node, b.node) || byName(a, b),
  cpus: (a, b) => cpuCount(a) - cpuCount(b) || byName(a, b),
  verdict: (a, b) => BADNESS.indexOf(a.verdict) - BADNESS.indexOf(b.verdict) || byName(b, a),
};

const PASSES: Readonly<Record<VmFilter, (vm: VmItem) => boolean>> = {
  all: () => true,
  attention: needsAttention,
  mask: ({ mask }) => mask !== '',
};

/** The VMs that match a query, in its order. */
export function findVms(vms: readonly VmItem[], { text, sort, descending, filter }: VmQuery): VmItem[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const passes = PASSES[filter];
  const has = ({ name, node, reason, text: said }: VmItem) =>
    words.every((word) => [name, node, reason, said].some((one) => one.toLowerCase().includes(word)));
  const found = vms.filter((vm) => passes(vm) && has(vm));
  const order = ORDERS[sort];
  return found.sort(descending ? (a, b) => order(b, a) : order);
}
