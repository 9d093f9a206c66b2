import type { NodeTopologyStatus } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import type { HostDescription } from '../../model/host.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import type { KubeletConfig } from '../host/kubelet-config.ts';
import type { Networks } from '../networks/network-map.ts';
import { type Condition, conditionOf, withTimes } from './conditions.ts';

/** Everything a report is made of. */
export interface ReportInputs {
  readonly host: HostDescription;
  readonly kubeletVersion: string | undefined;
  readonly kubeletConfig: KubeletConfig | undefined;
  /** Why there is no kubelet configuration, when there is none. */
  readonly kubeletConfigProblems: readonly string[];
  readonly view: AssignmentsView;
  readonly networks: Networks;
  readonly networkProblems: readonly string[];
  readonly pmdCpus: CpuSet;
}

/**
 * The status to publish, or undefined while it is not known who owns which CPUs: a report without assignments would
 * read as a node whose every CPU is free.
 * @param before the conditions published last
 * @param now RFC 3339, for conditions that changed
 */
export function buildStatus(
  inputs: ReportInputs,
  before: readonly Condition[],
  now: string,
): NodeTopologyStatus | undefined {
  const { host, kubeletVersion, kubeletConfig, view, networks, pmdCpus } = inputs;
  if (view.free === undefined || view.reserved === undefined || view.policy === undefined) return undefined;
  return {
    ...(kubeletVersion === undefined ? {} : { kubeletVersion }),
    cells: host.cells.map(({ id, cpus }) => ({ id, cpus })),
    cores: [...host.cores],
    ...(host.sockets === undefined ? {} : { sockets: [...host.sockets] }),
    ...(host.uncores === undefined ? {} : { uncores: [...host.uncores] }),
    reserved: view.reserved.toString(),
    ...kubeletPart(view.policy, kubeletConfig),
    assignments: view.assignments.map(({ podUID, container, cpus, name }) => ({
      podUID,
      ...(name === undefined ? {} : name),
      container,
      cpus: cpus.toString(),
    })),
    physnets: networks.physnets.map(({ name, cells }) => ({ name, cells: CpuSet.of(cells).toString() })),
    ...(networks.tunnel === undefined ? {} : { tunnel: { cells: CpuSet.of(networks.tunnel.cells).toString() } }),
    ...(pmdCpus.isEmpty ? {} : { pmdCPUs: pmdCpus.toString() }),
    conditions: withTimes(
      [
        conditionOf('AssignmentsKnown', 'SourceMissing', view.problems),
        conditionOf('KubeletConfigKnown', 'NotFound', configProblems(inputs)),
        conditionOf('NetworksKnown', 'InvalidMap', inputs.networkProblems),
      ],
      before,
      now,
    ),
  };
}

/** The policy is the running kubelet's own word (its checkpoint); the options are only in its configuration. */
function kubeletPart(policy: string, config: KubeletConfig | undefined) {
  if (config === undefined) return { cpuManager: { policy } };
  const { cpuManager, topologyManager, memoryManager } = config;
  return {
    cpuManager: { policy, options: { ...cpuManager.options } },
    topologyManager: { ...topologyManager, options: { ...topologyManager.options } },
    memoryManager: { ...memoryManager },
  };
}

/** The configuration file may be newer than the running kubelet, or another one's. */
function configProblems({ kubeletConfig, kubeletConfigProblems, view }: ReportInputs): readonly string[] {
  if (kubeletConfig === undefined) return kubeletConfigProblems;
  const { source, cpuManager, reserved } = kubeletConfig;
  const problems: string[] = [];
  if (view.policy !== undefined && cpuManager.policy !== view.policy) {
    problems.push(`${source} says cpuManagerPolicy ${cpuManager.policy}, the kubelet runs with ${view.policy}`);
  }
  if (view.policy === 'static' && reserved !== undefined && view.reserved?.equals(reserved) === false) {
    problems.push(`${source} says reservedSystemCPUs ${reserved}, the kubelet holds back ${view.reserved}`);
  }
  return problems;
}
