import { CpuSet } from '../model/cpu-set.ts';
import { wholeCoresTouching } from '../model/host.ts';
import type { Admission } from '../model/kubelet/admission.ts';
import type { Kubelet } from '../model/kubelet/kubelet.ts';
import type { PodRequest } from '../model/kubelet/pod-request.ts';
import { isNetworkResource } from '../model/kubelet/report.ts';
import type { KubeletState } from '../model/kubelet/state.ts';
import { physnetOfResource, TUNNEL_RESOURCE } from '../model/names.ts';
import type { BoundPod } from './cluster.ts';
import type { DpuVerdict } from './dpu-health.ts';
import type { NodeReport } from './node-report.ts';

/** Why a node is refused; labels a metric. */
export type Refusal = 'no-report' | 'dpu' | 'misaligned' | 'cpus' | 'locality' | 'network' | 'unpredictable';

export type NodeVerdict =
  | { readonly fits: true; readonly score: number; readonly cpus: CpuSet }
  | {
      readonly fits: false;
      readonly refusal: Refusal;
      /** Of few distinct values, since the scheduler counts nodes by it. */
      readonly text: string;
      /** Whether other pods' leaving could change it. */
      readonly preemptible: boolean;
    };

/** What is known of a node when it is judged. */
export interface NodeFacts {
  readonly report: NodeReport | undefined;
  readonly boundPods: Iterable<BoundPod>;
  /** Undefined for a node whose network is on no DPU, or a pod that needs none. */
  readonly dpu: DpuVerdict | undefined;
}

/** What becomes of nodes that cannot be predicted: refused, or left to the scheduler's own count of CPUs. */
export type UnpredictablePolicy = 'refuse' | 'count-check';

const LOWEST = 0;
const HIGHEST = 10;

/** Would this node's kubelet take the pod, on CPUs beside its networks, with its DPU alive? */
export function judgeNode(pod: PodRequest, facts: NodeFacts, policy: UnpredictablePolicy): NodeVerdict {
  const { report, dpu } = facts;
  if (dpu !== undefined && !dpu.ready) return refuse('dpu', dpuText(dpu), false);
  if (pod.containers.every(({ cpus }) => cpus === 0)) return { fits: true, score: LOWEST, cpus: CpuSet.EMPTY };
  if (report === undefined) return unpredicted('no-report', 'no NodeTopology report', policy);
  if ('unpredictable' in report.kubelet || report.state === undefined) {
    const why = 'unpredictable' in report.kubelet ? report.kubelet.unpredictable : 'no state';
    return unpredicted('unpredictable', `kubelet not predictable: ${why}`, policy);
  }
  const state = withBoundPods(report.kubelet, report.state, report.reportedUids, facts.boundPods);
  const admission = report.kubelet.admit(state, pod);
  if (!admission.admitted) return refuseAdmission(admission);
  const cpus = admission.containers.reduce((all, container) => all.union(container.cpus), CpuSet.EMPTY);
  const wholeCores = report.status.cpuManager.options?.['full-pcpus-only'] === 'true';
  // The kubelet counts threads: where earlier owners have split cores it would hand out halves of them.
  if (wholeCores && !wholeCoresTouching(report.host, cpus).equals(cpus)) {
    return refuse('cpus', 'too few free whole cores', true);
  }
  return distantNetwork(pod, report, cpus) ?? { fits: true, score: scoreOf(report, state, cpus), cpus };
}

/** Pods that are bound here but not in the report yet: their CPUs are as good as taken. */
function withBoundPods(
  kubelet: Kubelet,
  reported: KubeletState,
  reportedUids: ReadonlySet<string>,
  pods: Iterable<BoundPod>,
): KubeletState {
  let state = reported;
  for (const { uid, request } of pods) {
    if (reportedUids.has(uid)) continue;
    const admission = kubelet.admit(state, request);
    if (admission.admitted) state = admission.state;
  }
  return state;
}

function refuseAdmission({ reason, message }: Extract<Admission, { admitted: false }>): NodeVerdict {
  if (reason === 'TopologyAffinityError') return refuse('locality', `kubelet: ${message}`, true);
  const misaligned = message.includes('not multiple');
  return refuse(misaligned ? 'misaligned' : 'cpus', `kubelet: ${message}`, !misaligned);
}

/** A required network none of whose NUMA nodes holds all the CPUs that the kubelet would give. */
function distantNetwork(pod: PodRequest, report: NodeReport, cpus: CpuSet): NodeVerdict | undefined {
  const cells = CpuSet.of(report.host.cells.filter((cell) => cell.cpus.intersects(cpus)).map(({ id }) => id));
  const resources = new Set(pod.containers.flatMap(({ devices }) => [...devices.keys()]).filter(isNetworkResource));
  for (const resource of resources) {
    const name = resource === TUNNEL_RESOURCE ? 'the tunnel' : `physnet ${physnetOfResource(resource) ?? resource}`;
    const wanted = cellsOf(report, resource);
    if (wanted === undefined) return refuse('network', `${name} is not on this node`, false);
    if (wanted.isEmpty || cells.isSubsetOf(wanted)) continue;
    return refuse('network', `too few free whole cores on the NUMA nodes of ${name}`, true);
  }
  return undefined;
}

function cellsOf({ status }: NodeReport, resource: string): CpuSet | undefined {
  const physnet = physnetOfResource(resource);
  const found = physnet === undefined ? status.tunnel : status.physnets?.find(({ name }) => name === physnet);
  return found && CpuSet.parse(found.cells);
}

/** The fuller the node will be, the better: whole nodes and cells stay free for the large. */
function scoreOf(report: NodeReport, state: KubeletState, cpus: CpuSet): number {
  const reserved = CpuSet.parse(report.status.reserved);
  const total = report.host.online.minus(reserved).size;
  const free = state.defaultSet.minus(reserved).minus(cpus).size;
  return Math.round(1 + (HIGHEST - 1) * (1 - free / Math.max(1, total)));
}

function dpuText({ state, age }: DpuVerdict): string {
  if (age === undefined) return 'DPU not ready: not seen alive yet';
  return `DPU not ready: ${state}, last renewal ${Math.round(age)} s ago`;
}

function unpredicted(refusal: Refusal, text: string, policy: UnpredictablePolicy): NodeVerdict {
  return policy === 'refuse' ? refuse(refusal, text, false) : { fits: true, score: LOWEST, cpus: CpuSet.EMPTY };
}

function refuse(refusal: Refusal, text: string, preemptible: boolean): NodeVerdict {
  return { fits: false, refusal, text, preemptible };
}
