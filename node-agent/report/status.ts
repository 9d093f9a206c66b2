import type { DisturbedPod, NodeTopologyStatus, PinningState, RefusedStart } from '../../kube/node-topology.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { cut } from '../../model/errors.ts';
import { pagesText, takenPages, takenPagesText } from '../../model/kubelet/usage.ts';
import { GATES } from '../../model/kubelet/versions.ts';
import { byText } from '../../model/lists.ts';
import { KUBELET_CONFIG_CONDITION, KUBELET_RUN_CONDITION } from '../../model/names.ts';
import { wholeOrNone } from '../../model/quantity.ts';
import type { DeviceResource } from '../assignments/devices.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import { freePageBytes } from '../host/host-facts.ts';
import type { NodeKubeletConfig } from '../host/kubelet-config.ts';
import type { NetworksView } from '../networks/combine.ts';
import { networkText } from '../networks/locate.ts';
import { type CheckedRun, checkRun, pageContradictions, type RunInputs } from './run-check.ts';

/** Characters of the networks in the summary. */
const SUMMARY_CHARACTERS = 255;

export interface ReportInputs extends RunInputs {
  readonly capacity: Readonly<Record<string, string>>;
  /** node.status.declaredFeatures. */
  readonly declaredFeatures?: readonly string[] | undefined;
  readonly kubeletConfigProblems: readonly string[];
  /** Undefined until the agent has read the networks once since its start. */
  readonly networks: NetworksView | undefined;
  /** CPUs of poll mode drivers: configured, or found in use. */
  readonly pmdCpus: CpuSet;
  readonly pinsVms: boolean;
  readonly pinning: readonly PinningState[];
  readonly refusals: readonly RefusedStart[];
  readonly interference: readonly DisturbedPod[];
  readonly ovsProblems: readonly string[];
  /** Daemons of Open vSwitch that do not answer; undefined if this host runs none. */
  readonly ovsSilence: readonly string[] | undefined;
  /** State files that cannot be read or written. */
  readonly unsaved: readonly string[];
  readonly clockProblems: readonly string[];
  readonly failedDuties: readonly string[];
}

const unlessEmpty = <Item>(items: readonly Item[]) => (items.length === 0 ? undefined : [...items]);

/** Undefined while owners or networks are unknown: all CPUs would look free. @param now RFC 3339 */
export function buildStatus(
  inputs: ReportInputs,
  before: NodeTopologyStatus | undefined,
  now: string,
): NodeTopologyStatus | undefined {
  const { run, kubeletVersion, view, pmdCpus, pinning, refusals, interference } = inputs;
  if (inputs.networks === undefined || view.isAnswerPending) return undefined;
  const { physnets, tunnel } = inputs.networks.networks;
  if (view.free === undefined || view.reserved === undefined || view.policy === undefined) return undefined;
  const { memory, isolated, offline } = run.facts;
  const checked = checkRun(inputs);
  const host = checked.description;
  const reserved = view.reserved.intersect(checked.cpus);
  const networks = [...physnets.keys(), ...(tunnel === undefined ? [] : ['tunnel'])];
  return defined({
    kubeletVersion,
    cells: host.cells.map(({ id, cpus }) => ({ id, cpus })),
    cores: [...host.cores],
    sockets: host.sockets && [...host.sockets],
    uncores: host.uncores && [...host.uncores],
    counts: host.counts,
    reserved: reserved.toString(),
    ...kubeletPart(inputs, view.policy),
    devices: devicesOf(view.devices, inputs.capacity),
    distances: memory.distances,
    isolated: isolated.toString() || undefined,
    offline: offline.toString() || undefined,
    assignments: view.assignments.map(({ podUID, container, cpus, name }) => {
      return { podUID, ...name, container, cpus: cpus.toString() };
    }),
    claims: unlessEmpty(view.claims.map(({ uid, cpus, name }) => ({ uid, ...name, cpus: cpus.toString() }))),
    physnets: [...physnets]
      .map(([name, cells]) => ({ name, cells: cells.toString() }))
      .sort(byText(({ name }) => name)),
    tunnel: tunnel && { cells: tunnel.toString() },
    pmdCPUs: pmdCpus.toString() || undefined,
    pinsVMs: inputs.pinsVms ? undefined : false,
    pinning: unlessEmpty(pinning),
    refusals: unlessEmpty(refusals),
    interference: unlessEmpty(interference),
    summary: {
      cpus: host.cells.reduce((sum, { cpus }) => sum + CpuSet.parse(cpus).size, 0),
      free: view.free.intersect(checked.cpus).minus(reserved).size,
      networks: cut(networks.sort().join(), SUMMARY_CHARACTERS),
      reported: now,
    },
    conditions: withTimes(conditionsOf(inputs, checked, inputs.networks), before?.conditions ?? [], now),
  });
}

/** Without the fields that are undefined, as in JSON. */
function defined<Fields extends object>(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields;
}

/** One condition for each problem that an operator would have to solve. */
function conditionsOf(inputs: ReportInputs, run: CheckedRun, networks: NetworksView): ConditionState[] {
  const { view, failedDuties } = inputs;
  const reason = networks.problems[0]?.reason ?? '';
  const networkProblems = networks.problems.map(({ message }) => message);
  const down = [...networks.down].map((network) => `${networkText(network)}: none of its uplinks has a carrier`);
  const failed = failedDuties.map((duty) => `the duty ${duty} failed and restarts; see the agent's log`);
  return [
    conditionOf('AssignmentsKnown', 'SourceMissing', view.problems),
    conditionOf(KUBELET_RUN_CONDITION, 'Incomplete', run.problems),
    conditionOf('KubeletSeesHost', 'HostChanged', run.unseen),
    conditionOf(KUBELET_CONFIG_CONDITION, 'NotFound', configProblems(inputs)),
    conditionOf('NetworksKnown', reason, networkProblems),
    conditionOf('NetworkMapValid', 'InvalidMap', networks.mapFault === undefined ? [] : [networks.mapFault]),
    conditionOf('NetworkMapAgrees', 'Drift', networks.drift),
    ...(run.contradictions.length === 0
      ? []
      : [conditionOf('KubeletTopologyAgrees', 'CoresDiffer', run.contradictions)]),
    ...(inputs.kubeletConfig?.memoryManager.policy === 'Static'
      ? [
          conditionOf('MemoryStateKnown', 'StateUnusable', memoryProblems(inputs)),
          conditionOf('HugePagesFree', 'Taken', takenPagesTexts(inputs, inputs.kubeletConfig)),
        ]
      : []),
    conditionOf('UplinksUp', 'NoCarrier', down),
    conditionOf('NetworksPolledNear', 'NoPollingCPU', networks.unpolled),
    conditionOf('OpenVswitchInPlace', 'Incomplete', inputs.ovsProblems),
    ...(inputs.ovsSilence === undefined ? [] : [conditionOf('OpenVswitchAnswers', 'NoAnswer', inputs.ovsSilence)]),
    conditionOf('StateSaved', 'FileUnusable', inputs.unsaved),
    conditionOf('ClockAgrees', 'ClockDiffers', inputs.clockProblems),
    conditionOf('DutiesRunning', 'Failed', failed),
  ];
}

/** The policy comes from the running kubelet (its checkpoint); the options are only in its configuration. */
function kubeletPart(inputs: ReportInputs, policy: string) {
  const { kubeletConfig: config } = inputs;
  if (config === undefined || configProblems(inputs).length > 0) return { cpuManager: { policy } };
  const { cpuManager, topologyManager, memoryManager, featureGates } = config;
  return {
    cpuManager: { policy, options: cpuManager.options },
    topologyManager,
    memoryManager: { ...memoryManager, ...memoryCells(inputs, config) },
    featureGates: { ...featureGates, ...(policy === 'static' && declaredGates(inputs)) },
  };
}

/** Gates that are on by what the kubelet declares, whatever its configuration says. */
function declaredGates({ declaredFeatures = [] }: ReportInputs): Record<string, boolean> {
  const declared = Object.entries(GATES).filter(([, { declaredAs = '' }]) => declaredFeatures.includes(declaredAs));
  return Object.fromEntries(declared.map(([name]) => [name, true]));
}

/** With unhealthy ones, which the kubelet counts for the narrowest hint; not known until the Node has all. */
function devicesOf(devices: AssignmentsView['devices'], capacity: ReportInputs['capacity']) {
  const counted = devices?.map((resource) => {
    return { ...resource, unhealthy: (wholeOrNone(capacity[resource.resource] ?? '') ?? 0) - healthyDevices(resource) };
  });
  if (counted?.some(({ unhealthy }) => unhealthy < 0)) return undefined;
  return counted?.map(({ unhealthy, ...rest }) => (unhealthy > 0 ? { ...rest, unhealthy } : rest));
}

export function healthyDevices({ groups }: DeviceResource): number {
  return groups.reduce((sum, { total }) => sum + total, 0);
}

function memoryCells(inputs: ReportInputs, { memoryManager: { policy }, reservedMemory }: NodeKubeletConfig) {
  const { cells } = inputs.run.facts.memory;
  const states = pageContradictions(inputs).length === 0 ? inputs.view.memory : undefined;
  if (cells.length === 0) return {};
  const free = inputs.kernel && freePageBytes(inputs.kernel);
  return {
    cells: cells.map(({ id, memory, hugePages }) => {
      const freePages = hugePages && free?.get(id);
      const state = policy === 'Static' ? states?.cells.get(id) : undefined;
      return defined({ id, memory, hugePages, freePages, reserved: reservedMemory.get(id), state });
    }),
  };
}

function takenPagesTexts(inputs: ReportInputs, config: NodeKubeletConfig): string[] {
  const { cells = [] } = memoryCells(inputs, config);
  const pages = cells.flatMap((cell) =>
    takenPages(cell).map(([type, bytes]) => `${pagesText(type, bytes)} on NUMA node ${cell.id}`),
  );
  return pages.length === 0 ? [] : [takenPagesText(pages)];
}

function memoryProblems(inputs: ReportInputs): readonly string[] {
  const { memory: states } = inputs.view;
  if (states === undefined) return ['the kubelet has not answered'];
  if (states.problem !== undefined) return [states.problem];
  const contradictions = pageContradictions(inputs);
  if (contradictions.length > 0) return contradictions;
  const missing = inputs.run.facts.memory.cells.filter(({ id }) => !states.cells.has(id)).slice(0, 1);
  return missing.map(({ id }) => `memory_manager_state has no state of NUMA node ${id} under policy Static`);
}

/** The configuration file may be newer than the running kubelet, or belong to another one. */
function configProblems({ kubeletConfig, kubeletConfigProblems, view }: ReportInputs): readonly string[] {
  if (kubeletConfig === undefined) return kubeletConfigProblems;
  const { source, cpuManager, reserved } = kubeletConfig;
  const problems: string[] = [];
  if (view.policy !== undefined && cpuManager.policy !== view.policy) {
    problems.push(`${source} says cpuManagerPolicy ${cpuManager.policy}, but the kubelet runs with ${view.policy}`);
  }
  if (view.policy === 'static' && reserved !== undefined && view.reserved?.equals(reserved) === false) {
    problems.push(`${source} says reservedSystemCPUs ${reserved}, but the kubelet reserves ${view.reserved}`);
  }
  return problems;
}

export type ReportCondition = NonNullable<NodeTopologyStatus['conditions']>[number];

/** A condition as its duty reports it, without the time. */
export type ConditionState = Omit<ReportCondition, 'lastTransitionTime'>;

/** A condition that is `True` with reason `AsExpected` without problems, and otherwise `False` with the reason. */
export function conditionOf(type: string, reason: string, problems: readonly string[]): ConditionState {
  return problems.length === 0
    ? { type, status: 'True', reason: 'AsExpected', message: '' }
    : { type, status: 'False', reason, message: problems.join('; ') };
}

/** A condition keeps its time while its status stays the same. @param now RFC 3339 */
export function withTimes(
  states: readonly ConditionState[],
  before: readonly ReportCondition[],
  now: string,
): ReportCondition[] {
  return states.map((state) => {
    const same = before.find(({ type, status }) => type === state.type && status === state.status);
    return { ...state, lastTransitionTime: same?.lastTransitionTime ?? now };
  });
}
