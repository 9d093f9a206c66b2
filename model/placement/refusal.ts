import { countText, cpuListText, cpusAre } from '../amounts.ts';
import type { CpuSet } from '../cpu-set.ts';
import { splitCore, unevenCore } from '../host.ts';
import type { PlacementHost, PredictedHost } from './needs.ts';

/** Texts that kube-scheduler counts: without numbers and names. */
const TEXTS = {
  'no-exclusive-cpus': 'node gives no exclusive CPUs',
  misaligned: 'CPU request is not whole cores',
  'too-few-whole-cores': 'too few free whole cores',
  'too-few-cpus': 'too few free CPUs',
  'offline-threads': 'node has cores with an offline thread',
  /** Cores or sockets differ in size, so the kubelet does not know the whole cores. */
  'uneven-cores': 'node has cores of different sizes',
  /** The kubelet would give out a thread of that core, or a reserved CPU. */
  'split-reservation': 'reserved CPUs of the node split a core',
  /** Its allocation would never end, and the kubelet would start no further pod. */
  'hangs-kubelet': 'the request would hang the kubelet',
  'polled-cpus': 'free CPUs are polled by the virtual switch',
  /** The topology manager would refuse: no set of NUMA nodes satisfies all requests of the pod. */
  'no-common-node': 'no NUMA node fits all resources',
  /** An init container gets CPUs of a NUMA node that is too full for the container that reuses them. */
  'tied-by-init': 'an init container ties it to a full NUMA node',
  'network-elsewhere': 'no room on the NUMA nodes of a required network',
  /** Required networks have no NUMA node in common, and the kubelet assigns no container CPUs near each of them. */
  'cannot-split': 'the kubelet cannot split it over the NUMA nodes of its networks',
  /** The same for a guest that sees its NUMA nodes: the kubelet may place it away from one of the networks. */
  'may-not-span': 'the kubelet may not span the NUMA nodes of its networks',
  /** The NUMA nodes of a required network could not hold the pod even if they were empty. */
  'larger-than-cells': 'larger than the NUMA nodes of its networks',
  /** The pod fits only if the kubelet admits it before or after pods in flight. */
  'in-flight': 'reserved for pods in flight',
  /** By the kernel, fewer are free than the kubelet counts. */
  'pages-taken': 'huge pages are taken by processes that did not reserve them',
  /** Other resources of the kubelet (memory, devices) are insufficient. */
  resources: 'resources short on the node',
} as const;

/** Few and stable values: they label metrics and determine what is tried next. */
export type RefusalReason = keyof typeof TEXTS;

export interface Refusal<Kind extends string = RefusalReason> {
  readonly fits: false;
  readonly kind: Kind;
  /** Few distinct values: kube-scheduler counts nodes by it. */
  readonly text: string;
  /** For people: the resource, its place, the requested and the available amount. */
  readonly detail: string;
  /** Missing CPUs, also if it needs whole cores; undefined if no number would help. */
  readonly missing?: number | undefined;
}

/** With the fixed text of its reason. `detail` names the values. */
export function refusal(kind: RefusalReason, detail: string, missing = 0): Refusal {
  const refused = { fits: false, kind, text: TEXTS[kind], detail } as const;
  return missing > 0 ? { ...refused, missing } : refused;
}

/**
 * The kubelet divides CPUs by cores, and so treats a hybrid processor as one without SMT. It gives whole cores although
 * reserved CPUs split one, except where it distributes CPUs across NUMA nodes.
 */
export function unfitForWholeCores({ host, reserved, offline, kubelet }: PlacementHost): Refusal | undefined {
  const uneven = unevenCore(host);
  if (uneven) {
    const detail = `core ${uneven} has ${countText(uneven.size, 'thread')} while others have a different number: the kubelet cannot tell whole cores on such a host`;
    return offline.isEmpty
      ? refusal('uneven-cores', detail)
      : refusal('offline-threads', `${cpusAre(offline)} offline: ${detail}`);
  }
  const split = splitCore(host, reserved);
  if (split === undefined || 'unpredictable' in kubelet || !kubelet.cpu?.options.distributeAcrossNuma) return undefined;
  const text = `reserved ${cpuListText(reserved)} split core ${split}, of which distribute-cpus-across-numa gives out single threads`;
  return refusal('split-reservation', text);
}

/** The kubelet would give CPUs that are reserved or have an owner: it counts the threads of a core wrongly. */
export function givesTwice({ host, reserved, offline }: PlacementHost, cpus: CpuSet): Refusal {
  const state = cpus.intersects(reserved) ? 'reserved' : 'in use';
  const text = `the kubelet would give out ${cpuListText(cpus)}, which ${cpus.size === 1 ? 'is' : 'are'} ${state}, because cores or sockets differ in size`;
  if (!offline.isEmpty) return refusal('offline-threads', `${cpusAre(offline)} offline: ${text}`);
  const split = splitCore(host, reserved);
  if (split === undefined) return refusal('uneven-cores', text);
  return refusal('split-reservation', `${text}; reserved ${cpuListText(reserved)} split core ${split}`);
}

export function freeCores({ host, reserved, state }: PredictedHost): CpuSet[] {
  const free = state.defaultSet.minus(reserved);
  return host.cores.filter((core) => core.isSubsetOf(free));
}
