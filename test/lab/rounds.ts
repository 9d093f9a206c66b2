import type { TopologyPolicy } from '../../model/kubelet/merge.ts';

/** One configuration of the kubelet under which pods are drawn. */
export interface Round {
  readonly name: string;
  readonly topologyPolicy: TopologyPolicy;
  readonly scope: 'container' | 'pod';
  readonly cpuOptions: Readonly<Record<string, string>>;
  /** Reserved CPUs as a list; the lab has CPUs 0-7, siblings 0-1, 2-3 | 4-5, 6-7. */
  readonly reserved: string;
  /**
   * The kubelet is also started again under running pods, which it then judges anew. Such a round has no devices: until
   * the plugins have registered again, what becomes of their pods depends on which containers happen to run.
   */
  readonly restarts?: boolean;
}

const FULL = { 'full-pcpus-only': 'true' };

/** All four policies under both scopes with whole cores, then without, then what only single options do, then restarts. */
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
  round('distributed', 'best-effort', 'container', { 'distribute-cpus-across-numa': 'true' }),
  round('strict-split-reserve', 'restricted', 'container', { ...FULL, 'strict-cpu-reservation': 'true' }, '0,5'),
  { ...round('restarts', 'best-effort', 'container', FULL), restarts: true },
  { ...round('restarts-pod', 'single-numa-node', 'pod', {}), restarts: true },
];

function round(
  name: string,
  topologyPolicy: TopologyPolicy,
  scope: Round['scope'],
  cpuOptions: Round['cpuOptions'],
  reserved = '0-1',
): Round {
  return { name, topologyPolicy, scope, cpuOptions, reserved };
}
