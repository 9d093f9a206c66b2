import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import type { Pod } from '../../kube/resources.ts';
import { preparedHost } from '../../model/placement/needs.ts';
import { createRegistry } from '../../runtime/metrics.ts';
import type { BoundPod, Cluster } from '../../scheduler-plugin/cluster.ts';
import type { DpuHealth, DpuVerdict } from '../../scheduler-plugin/dpu-health.ts';
import { createExtender, type Extender } from '../../scheduler-plugin/extender.ts';
import { createExtenderMetrics } from '../../scheduler-plugin/metrics.ts';
import type { Recheck } from '../../scheduler-plugin/recheck.ts';
import type { UnpredictablePolicy } from '../../scheduler-plugin/verdict.ts';

/** Two cells of four SMT2 cores each; the first core reserved; physnet0 on cell 0, physnet1 on cell 1. */
export function statusOf(more: Partial<NodeTopologyStatus> = {}): NodeTopologyStatus {
  return {
    kubeletVersion: 'v1.36.2',
    cells: [
      { id: 0, cpus: '0-3,8-11' },
      { id: 1, cpus: '4-7,12-15' },
    ],
    cores: Array.from({ length: 8 }, (_, core) => `${core},${core + 8}`),
    reserved: '0,8',
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    topologyManager: { policy: 'best-effort', scope: 'container' },
    assignments: [],
    physnets: [
      { name: 'physnet0', cells: '0' },
      { name: 'physnet1', cells: '1' },
    ],
    tunnel: { cells: '1' },
    ...more,
  };
}

/** A Guaranteed pod of one container. */
export function podOf(cpu: string, resources: readonly string[] = [], more: Partial<Pod> = {}): Pod {
  const amounts = { cpu, memory: '1Gi', ...Object.fromEntries(resources.map((name) => [name, '1'])) };
  return {
    metadata: { name: 'vm', namespace: 'default', uid: 'pod-uid' },
    spec: { containers: [{ name: 'compute', resources: { requests: amounts, limits: { ...amounts } } }] },
    ...more,
  } as Pod;
}

export interface ExtenderFixture {
  readonly nodes?: Readonly<Record<string, NodeTopologyStatus | undefined>>;
  readonly bound?: readonly BoundPod[];
  readonly dpus?: Readonly<Record<string, DpuVerdict>>;
  readonly missing?: string;
  readonly policy?: UnpredictablePolicy;
}

export function extenderOf(fixture: ExtenderFixture = {}): Extender & { readonly refusedUids: string[] } {
  const { nodes = { n1: statusOf() }, bound = [], dpus = {}, missing, policy = 'refuse' } = fixture;
  const reports = new Map(Object.entries(nodes).map(([name, status]) => [name, status && preparedHost(status)]));
  const cluster: Cluster = {
    run: async () => undefined,
    missing,
    host: (name) => reports.get(name),
    boundPods: (name) => bound.filter(({ node }) => node === name),
    isDpuHost: (name) => name in dpus,
    dpuLeases: new Map(),
  };
  const dpuHealth: DpuHealth = {
    changed: () => undefined,
    verdict: (node) => dpus[node] ?? { ready: false, state: 'unproven', age: undefined },
    stop: () => undefined,
  };
  const refusedUids: string[] = [];
  const recheck: Recheck = {
    refused: (uid) => void refusedUids.push(uid),
    settled: () => undefined,
    improved: () => undefined,
    stop: () => undefined,
  };
  const metrics = createExtenderMetrics(createRegistry());
  return { ...createExtender({ cluster, dpuHealth, recheck, unpredictable: policy, metrics }), refusedUids };
}
