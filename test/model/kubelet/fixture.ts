import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost, type Host } from '../../../model/host.ts';
import { createKubelet, type Kubelet, type KubeletConfig } from '../../../model/kubelet/kubelet.ts';
import type { RequestingPod } from '../../../model/kubelet/pod-request.ts';
import type { ContainerShape } from '../../../model/shapes.ts';

/** NUMA nodes of consecutive CPUs with adjacent SMT siblings: 2 NUMA nodes of 4 CPUs are 0-3 and 4-7. */
export function simpleHost(cells: number, cpusPerCell: number, threads = 2): Host {
  const cpus = cells * cpusPerCell;
  return createHost({
    cells: Array.from({ length: cells }, (_, id) => ({
      id,
      cpus: `${id * cpusPerCell}-${(id + 1) * cpusPerCell - 1}`,
    })),
    cores: Array.from({ length: cpus / threads }, (_, core) => `${core * threads}-${(core + 1) * threads - 1}`),
  });
}

/** A predictable kubelet; by default full-pcpus-only, container scope, CPUs 0-1 reserved. */
export function predictable(host: Host, config: Partial<KubeletConfig> = {}): Kubelet {
  const kubelet = createKubelet({
    version: 'v1.36.2',
    host,
    cpuManager: { policy: 'static', options: { 'full-pcpus-only': 'true' } },
    reserved: CpuSet.parse('0-1'),
    ...config,
  });
  if ('unpredictable' in kubelet) throw new Error(kubelet.unpredictable);
  return kubelet;
}

/** A Guaranteed container. */
export function container(name: string, cpu: number | string, limits: Record<string, string> = {}): ContainerShape {
  return { name, resources: { limits: { cpu: `${cpu}`, memory: '1Gi', ...limits } } };
}

export function pod(
  uid: string,
  containers: readonly ContainerShape[],
  initContainers: readonly ContainerShape[] = [],
): RequestingPod {
  return { metadata: { uid }, spec: { containers, initContainers } };
}
