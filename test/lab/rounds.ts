import type { TopologyPolicy } from '../../model/kubelet/merge.ts';
import type { LayoutName } from './machine/layouts.ts';

export interface Round {
  readonly name: string;
  readonly topologyPolicy: TopologyPolicy;
  readonly scope: 'container' | 'pod';
  readonly cpuOptions: Readonly<Record<string, string>>;
  /** Reserved CPUs as a list; siblings are 0-1, 2-3 and so on. */
  readonly reserved: string;
  readonly topologyOptions?: Readonly<Record<string, string>>;
  /** With the static memory manager: reserved MiB of each NUMA node. Absent: without it. */
  readonly reservedMemory?: readonly number[];
  /** The layout of its machine. Absent: two NUMA nodes. */
  readonly layout?: LayoutName;
  /** The kubelet is also restarted under running pods, which it then admits again. */
  readonly restarts?: boolean;
  /** How many resources of devices the pods request. Absent: up to two for some pods, none for pods that run. */
  readonly devices?: 'none' | 'several';
  /** Where the kubelet has all its settings from, with `/configz` switched off (`flags` in older recordings). Absent: one file. */
  readonly settings?: 'flags' | 'drop-ins';
  /** Whether openshift/sriov-network-device-plugin runs, too, and each pod also requests NICs of it. */
  readonly sriov?: boolean;
}

/** Whether the pods' containers run, if that matters. Such a round takes long, and plays a third of the pods. */
export function startsPods({ restarts }: Round): boolean {
  return restarts === true;
}

const FULL = { 'full-pcpus-only': 'true' };
const DISTRIBUTED = { 'distribute-cpus-across-numa': 'true' };
const STRICT = { 'strict-cpu-reservation': 'true' };
const UNCORE = { 'prefer-align-cpus-by-uncorecache': 'true' };
const SOCKET = { 'align-by-socket': 'true' };
const CLOSEST = { 'prefer-closest-numa-nodes': 'true' };

/**
 * All four policies with both scopes with whole cores, then without, then effects of single options, then restarts,
 * then the static memory manager, then rounds for other machines, then drop-ins as the source of the kubelet's settings.
 */
export const ROUNDS: readonly Round[] = [
  round('none', 'none', 'container', FULL),
  round('best-effort', 'best-effort', 'container', FULL),
  round('restricted', 'restricted', 'container', FULL),
  round('single-numa-node', 'single-numa-node', 'container', FULL),
  round('best-effort-pod', 'best-effort', 'pod', FULL),
  round('restricted-pod', 'restricted', 'pod', FULL),
  round('single-numa-node-pod', 'single-numa-node', 'pod', FULL),
  round('best-effort-threads', 'best-effort', 'container', {}),
  round('restricted-threads', 'restricted', 'container', {}),
  round('single-numa-node-threads', 'single-numa-node', 'pod', {}),
  round('distributed', 'best-effort', 'container', DISTRIBUTED),
  round('strict-split-reserve', 'restricted', 'container', { ...FULL, ...STRICT }, '0,5'),
  round('spread-cores', 'best-effort', 'container', { 'distribute-cpus-across-cores': 'true' }),
  { ...round('restarts', 'best-effort', 'container', FULL), restarts: true },
  { ...round('restarts-pod', 'single-numa-node', 'pod', {}), restarts: true },
  { ...round('memory-none', 'none', 'container', {}), reservedMemory: [200, 100] },
  { ...round('memory', 'best-effort', 'container', FULL), reservedMemory: [100, 300] },
  { ...round('memory-restricted', 'restricted', 'container', {}), reservedMemory: [300, 0] },
  { ...round('memory-single-numa-node-pod', 'single-numa-node', 'pod', FULL), reservedMemory: [150, 150] },
  { ...round('memory-best-effort-pod', 'best-effort', 'pod', {}), reservedMemory: [100, 0] },
  on('uncores', round('uncore', 'best-effort', 'container', UNCORE)),
  on('uncores', round('uncore-cores', 'restricted', 'container', { ...UNCORE, ...FULL })),
  on('uncores', round('uncore-strict-pod', 'single-numa-node', 'pod', { ...UNCORE, ...STRICT }, '0,13')),
  on('uncores', round('uncore-none', 'none', 'container', UNCORE, '6')),
  on('four-nodes', round('sockets', 'best-effort', 'container', SOCKET)),
  on('four-nodes', round('sockets-pod', 'restricted', 'pod', { ...SOCKET, ...FULL })),
  on('four-nodes', { ...round('closest', 'best-effort', 'container', FULL), topologyOptions: CLOSEST }),
  on('four-nodes', { ...round('closest-pod', 'restricted', 'pod', {}), topologyOptions: CLOSEST }),
  on('four-nodes', round('distributed-cores', 'restricted', 'container', { ...DISTRIBUTED, ...FULL })),
  on('four-nodes', {
    ...round('memory-four-nodes', 'restricted', 'pod', {}),
    topologyOptions: CLOSEST,
    reservedMemory: [100, 100, 0, 0],
  }),
  pages('pages-none', 'none', 'container'),
  pages('pages-best-effort', 'best-effort', 'container'),
  pages('pages-restricted', 'restricted', 'container'),
  pages('pages-single-numa-node', 'single-numa-node', 'container'),
  pages('pages-best-effort-pod', 'best-effort', 'pod'),
  pages('pages-restricted-pod', 'restricted', 'pod'),
  pages('pages-single-numa-node-pod', 'single-numa-node', 'pod'),
  pages('pages-restarts', 'best-effort', 'container', { restarts: true }),
  pages('pages-restarts-pod', 'single-numa-node', 'pod', { restarts: true }),
  pages('sriov', 'best-effort', 'container', { sriov: true }),
  pages('sriov-pod', 'restricted', 'pod', { sriov: true }),
  pages('sriov-restarts', 'single-numa-node', 'container', { sriov: true, restarts: true }),
  { ...round('drop-ins', 'single-numa-node', 'container', STRICT), settings: 'drop-ins' },
  round('split-reserve', 'best-effort', 'container', FULL, '0,5'),
];

function pages(name: string, topologyPolicy: TopologyPolicy, scope: Round['scope'], rest: Partial<Round> = {}): Round {
  const options = scope === 'pod' ? {} : FULL;
  return {
    ...on('gigabyte-pages', round(name, topologyPolicy, scope, options)),
    reservedMemory: [200, 100],
    devices: 'several',
    ...rest,
  };
}

function on(layout: LayoutName, played: Round): Round {
  return { ...played, layout };
}

function round(
  name: string,
  topologyPolicy: TopologyPolicy,
  scope: Round['scope'],
  cpuOptions: Round['cpuOptions'],
  reserved = '0-1',
): Round {
  return { name, topologyPolicy, scope, cpuOptions, reserved };
}
