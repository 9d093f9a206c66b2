import { CpuSet, unionOf } from '../cpu-set.ts';
import { cut } from '../errors.ts';
import { createHost, HostError, MAX_CELL_ID, MAX_CPU_ID } from '../host.ts';
import {
  KUBELET_CONFIG_CONDITION,
  KUBELET_RUN_CONDITION,
  PHYSNET_RESOURCE_PREFIX,
  PLACED_RESOURCE,
  physnetResource,
  TUNNEL_RESOURCE,
} from '../names.ts';
import type { DevicePool, DevicePools } from './devices.ts';
import type { HostReport } from './host-report.ts';
import { createKubelet, type Kubelet, type Unpredictable } from './kubelet.ts';
import type { KubeletState } from './state.ts';
import { reportedPools, usageOf, withUsage } from './usage.ts';

/** An answer of the extender has the reason once for each node. */
const MAX_REASON_CHARACTERS = 120;

/** @param nearest whether an unpredicted version counts as the nearest predicted one @throws HostError, ParseError */
export function kubeletOfReport(
  report: HostReport,
  host = createHost(report),
  nearest = false,
): Kubelet | Unpredictable {
  const run = falseCondition(report, KUBELET_RUN_CONDITION);
  if (run !== undefined) return { unpredictable: cut(run, MAX_REASON_CHARACTERS) };
  if (!report.kubeletVersion) return { unpredictable: 'the kubelet version is not reported' };
  // An agent that could read the kubelet's configuration reports a policy, even if it is `none`.
  if (!report.topologyManager) {
    const message = falseCondition(report, KUBELET_CONFIG_CONDITION);
    const reason = message === undefined ? '' : `: ${cut(message, MAX_REASON_CHARACTERS)}`;
    return { unpredictable: `the kubelet's configuration is not reported${reason}` };
  }
  const [reserved, deviceCells] = [CpuSet.parse(report.reserved), cellsOfDevices(report)];
  return createKubelet({ ...report, version: report.kubeletVersion, nearest, host, reserved, deviceCells });
}

function falseCondition({ conditions = [] }: HostReport, name: string): string | undefined {
  return conditions.find(({ type, status }) => type === name && status === 'False')?.message;
}

function cellsOfDevices({ devices = [], physnets = [], tunnel }: HostReport): CpuSet {
  const lists = [...devices.flatMap(({ groups }) => groups), ...physnets, ...(tunnel ? [tunnel] : [])];
  return unionOf(lists.map(({ cells = '' }) => CpuSet.parse(cells, MAX_CELL_ID)));
}

/** @throws HostError if it has too many devices; ParseError */
export function stateOfReport(kubelet: Kubelet, report: HostReport): KubeletState {
  const pools = new Map([...reportedPools(report.devices), ...networkPools(report)]);
  const state = kubelet.initialState(pools, assignmentsOf(report.assignments));
  return withUsage(state, kubelet.topology, usageOf(report));
}

/** Several times the length that the largest host needs without ranges. */
const MAX_ASSIGNED_CHARACTERS = 65_536;

/** @throws HostError if the lists together are too long; ParseError */
export function assignedCpus(assignments: readonly { readonly cpus: string }[]): CpuSet[] {
  const length = assignments.reduce((sum, { cpus }) => sum + cpus.length, 0);
  if (length > MAX_ASSIGNED_CHARACTERS)
    throw new HostError(
      `its assignments are ${length} characters of CPU lists; the limit is ${MAX_ASSIGNED_CHARACTERS}`,
    );
  return assignments.map(({ cpus }) => CpuSet.parse(cpus, MAX_CPU_ID));
}

/** By pod uid and container name. @throws HostError, ParseError */
export function assignmentsOf(assignments: HostReport['assignments']): Map<string, Map<string, CpuSet>> {
  const byPod = new Map<string, Map<string, CpuSet>>();
  const sets = assignedCpus(assignments);
  assignments.forEach(({ podUID, container }, i) => {
    const ofPod = byPod.get(podUID) ?? new Map<string, CpuSet>();
    byPod.set(podUID, ofPod.set(container, sets[i]!));
  });
  return byPod;
}

/** The resources of the node's networks: one device each, which stays available when allocated. */
function networkPools({ physnets = [], tunnel, cells: reportedCells }: HostReport): DevicePools {
  const ids = CpuSet.of(reportedCells.map(({ id }) => id));
  const poolOn = (cells: string): DevicePool => {
    // The kubelet cannot align to a NUMA node that the host lacks.
    const nodes = CpuSet.parse(cells, MAX_CELL_ID).intersect(ids).toArray();
    return { devices: [{ id: '0', healthy: true, ...(nodes.length > 0 && { nodes }) }], endless: true };
  };
  const pools = physnets.map(({ name, cells }) => [physnetResource(name), poolOn(cells)] as const);
  return new Map(tunnel ? [...pools, [TUNNEL_RESOURCE, poolOn(tunnel.cells)]] : pools);
}

/** KubeVirt's devices (kvm, tun, vhost-net) have no NUMA node, and a node has thousands of them. */
const KUBEVIRT_DEVICE_PREFIX = 'devices.kubevirt.io/';

export function isReportedResource(resource: string): boolean {
  return !isNetworkResource(resource) && resource !== PLACED_RESOURCE && !resource.startsWith(KUBEVIRT_DEVICE_PREFIX);
}

export function isNetworkResource(resource: string): boolean {
  return resource.startsWith(PHYSNET_RESOURCE_PREFIX) || resource === TUNNEL_RESOURCE;
}
