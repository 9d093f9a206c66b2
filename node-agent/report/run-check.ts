import { cpuListText } from '../../model/amounts.ts';
import { CpuSet } from '../../model/cpu-set.ts';
import { bytesText } from '../../model/quantity.ts';
import type { AssignmentsView } from '../assignments/view.ts';
import { changedPages, hostWithCpus, type KernelState, type KubeletHost } from '../host/host-facts.ts';
import type { NodeKubeletConfig } from '../host/kubelet-config.ts';
import type { KubeletRun, RunMode } from '../host/kubelet-runs.ts';

export interface RunInputs {
  readonly run: KubeletRun;
  readonly runMode: RunMode;
  /** The kernel's state now; undefined if it cannot be read. */
  readonly kernel: KernelState | undefined;
  /** Undefined while the Node has only the version of an earlier run. */
  readonly kubeletVersion: string | undefined;
  readonly kubeletConfig: NodeKubeletConfig | undefined;
  readonly view: AssignmentsView;
}

export interface CheckedRun extends KubeletHost {
  /** The CPUs that the kubelet knows. */
  readonly cpus: CpuSet;
  /** Why nothing may be promised on the node: facts of the run that are missing, or that cannot be true together. */
  readonly problems: readonly string[];
  /** What the kernel has changed since the kubelet started: it affects the node after the kubelet's next start. */
  readonly unseen: readonly string[];
}

/** Compares the facts of a kubelet's run with each other, and with the kernel of this moment. */
export function checkRun(inputs: RunInputs): CheckedRun {
  const { run, kernel } = inputs;
  const { facts } = run;
  const cpus = cpusOfKubelet(inputs);
  const described = facts.host.online.intersect(cpus);
  const kubeletFacts = described.isEmpty ? facts : hostWithCpus(facts, described);
  const online = kernel?.online ?? CpuSet.parse(facts.sysfs.online);
  // CPUs that no kubelet can use are no news.
  const unusable = CpuSet.parse(facts.sysfs.online).minus(facts.host.online);
  const added = online.minus(cpus).minus(unusable);
  return {
    ...kubeletFacts,
    cpus,
    problems: [...missingFacts(inputs), ...contradictions(inputs, { cpus, online })],
    unseen: [
      ...(added.isEmpty ? [] : [`${cpuListText(added.brief)} came online after the kubelet started`]),
      ...(run.kernel === undefined || kernel === undefined ? [] : changedPages(run.kernel, kernel)),
    ],
  };
}

/**
 * The static policy's pool and assignments are all CPUs that the kubelet found when it started, except that
 * strict-cpu-reservation keeps the reserved ones out. Source: kubernetes 1.36, cpumanager/policy_static.go,
 * validateState.
 */
function cpusOfKubelet({ run, view, kubeletConfig }: RunInputs): CpuSet {
  const { cpusOfCheckpoint } = view;
  if (cpusOfCheckpoint === undefined) return run.cpus;
  if (kubeletConfig?.cpuManager.options['strict-cpu-reservation'] !== 'true') return cpusOfCheckpoint;
  return cpusOfCheckpoint.union(kubeletConfig.reserved ?? run.cpus);
}

function missingFacts({ runMode, kubeletVersion }: RunInputs): string[] {
  const missing = [
    ...(runMode === 'current' ? [] : ['its host is not read yet']),
    ...(kubeletVersion === undefined ? ['the Node has no version of it yet'] : []),
  ];
  return missing.map((fact) => `the kubelet has started again, and ${fact}`);
}

function contradictions(
  { run, view }: RunInputs,
  { cpus, online }: { readonly cpus: CpuSet; readonly online: CpuSet },
): string[] {
  const offline = cpus.minus(online);
  const texts: [differing: CpuSet, text: (cpus: string) => string][] = [
    [
      offline,
      (list) =>
        `${list} went offline after the kubelet started, which still assigns them: bring them online, or restart the kubelet without cpu_manager_state`,
    ],
    [cpus.minus(run.facts.host.online).minus(offline), (list) => `the kubelet has ${list}, not read from sysfs yet`],
    [view.owned.minus(cpus), (list) => `${list} have owners, and the kubelet's CPUs are ${cpus.brief}`],
    [
      (view.allocatable ?? CpuSet.EMPTY).minus(cpus),
      (list) => `the kubelet reports ${list} as allocatable, and its CPUs are ${cpus.brief}`,
    ],
  ];
  return texts.flatMap(([differing, text]) => (differing.isEmpty ? [] : text(cpuListText(differing.brief))));
}

/** Where the memory manager's own numbers of huge pages differ from the kernel's when the kubelet started. */
export function pageContradictions({ run, view, kubeletConfig }: RunInputs): string[] {
  const texts: string[] = [];
  for (const [id, amounts] of view.memory?.allocatable ?? []) {
    const { hugePages = {} } = run.facts.memory.cells.find((memory) => memory.id === id) ?? {};
    const reserved = kubeletConfig?.reservedMemory.get(id) ?? {};
    const types = new Set([...amounts.keys(), ...Object.keys(hugePages)].filter((type) => type !== 'memory'));
    for (const type of types) {
      const total = hugePages[type] ?? 0;
      const counted = (amounts.get(type) ?? 0) + (reserved[type] ?? 0);
      if (counted === total) continue;
      const had = `NUMA node ${id} has ${bytesText(total)} of ${type}, and the kubelet counts ${bytesText(counted)}`;
      texts.push(`${had}: restart the kubelet without memory_manager_state`);
    }
  }
  return texts;
}
