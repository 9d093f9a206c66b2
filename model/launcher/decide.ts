import { alignedCpus, annotatedThreadsPerCore, isAligned } from '../alignment.ts';
import { countText } from '../amounts.ts';
import { MAX_CPUS } from '../cpu-ranges.ts';
import type { Finding } from '../errors.ts';
import { NUMA_AFFINITY_ANNOTATION } from '../names.ts';
import { NETWORKS_ANNOTATION, parseAttachments, parseRef, refText } from '../networks/attachments.ts';
import { integralCpus } from '../quantity.ts';
import type { ContainerShape, PodShape, VmiShape } from '../shapes.ts';
import {
  type AlignmentPolicy,
  annotationFindings,
  mixedFinding,
  obstacleFindings,
  wantsWholeCores,
} from './annotation.ts';
import { hasPodLevelResources, integralContainers, isEqualRequestAndLimit, requestOf } from './containers.ts';
import { EVEN_PARITY_ANNOTATION, launcherCpus, launcherNeeds } from './cpus.ts';
import { recognizeLauncher } from './recognize.ts';

export interface AlignmentRequest {
  /** The pod under review. Its annotations are a copy of the VMI's at the time when KubeVirt rendered the pod. */
  readonly pod: PodShape;
  /** From the API server, because tenants can write the pod's own description of its VMI. */
  readonly vmi: VmiShape;
  /** The multiples of CPUs that the kubelets of the candidate nodes require: see askedMultiples. */
  readonly candidates: readonly number[];
  /** The feature gate FullPCPUsOnly. */
  readonly gate: boolean;
  /** Default: `annotated`. */
  readonly policy?: AlignmentPolicy;
}

export type Alignment =
  | {
      readonly kind: 'pad';
      /** The new resources.{requests,limits}.cpu of `compute`. */
      readonly to: number;
      readonly threadsPerCore: number;
      readonly findings: readonly Finding[];
    }
  | {
      readonly kind: 'none';
      readonly why: NoPadding;
      /** Threads per core that the CPUs were compared with; undefined if they were not compared. */
      readonly threadsPerCore: number | undefined;
      readonly findings: readonly Finding[];
    };

export type NoPadding =
  | 'not-a-launcher'
  | 'not-annotated'
  | 'gate-off'
  | 'not-dedicated'
  | 'not-isolated'
  | 'pod-level-resources'
  | 'no-exclusive-cpus'
  | 'aligned';

/**
 * Decides whether to round a launcher's CPUs up to whole cores.
 *
 * It rounds the pod's current request, not the request that follows from the VMI. It therefore changes nothing in a
 * second pass, does not double KubeVirt's even-parity padding, and corrects that padding where the result is odd.
 * @throws ParseError if an amount in the pod is not a quantity
 */
export function decideAlignment(request: AlignmentRequest): Alignment {
  const { pod, vmi, gate, policy = 'annotated' } = request;
  const recognized = recognizeLauncher(pod);
  if (recognized.kind === 'other') return none('not-a-launcher');
  const wanted = wantsWholeCores(pod.metadata);
  const found = annotationFindings(pod.metadata, vmi.spec.domain.cpu ?? {}, gate);
  if (policy === 'annotated' && !wanted) return none('not-annotated', found);
  if (!gate) return none('gate-off', found);
  if (vmi.spec.domain.cpu?.dedicatedCpuPlacement !== true) return none('not-dedicated', found);
  if (vmi.spec.domain.cpu.isolateEmulatorThread !== true) return none('not-isolated', found);
  const compute = pod.spec.containers[recognized.compute]!;
  const threadsPerCore = targetThreadsPerCore(policy, wanted, request.candidates);
  const findings = [...found, ...podFindings(pod, recognized.compute, threadsPerCore, request.candidates)];
  if (hasPodLevelResources(pod)) return none('pod-level-resources', findings);
  const from = exclusiveCpus(compute);
  if (from === undefined) return none('no-exclusive-cpus', findings);
  const to = alignedCpus(neededCpus(vmi, from), threadsPerCore);
  if (to === from) return none('aligned', findings, threadsPerCore);
  return { kind: 'pad', to, threadsPerCore, findings };
}

/**
 * Threads per core to round to. `auto` follows the nodes. Without any report it uses the annotation's promise of an
 * even number.
 */
function targetThreadsPerCore(policy: AlignmentPolicy, wanted: boolean, candidates: readonly number[]): number {
  if (policy !== 'auto') return annotatedThreadsPerCore(candidates);
  if (candidates.length === 0) return wanted ? annotatedThreadsPerCore([]) : 1;
  return Math.max(1, ...new Set(candidates));
}

/** The whole number of CPUs of equal request and limit, if the static CPU manager would assign them exclusively. */
function exclusiveCpus(compute: ContainerShape): number | undefined {
  if (!isEqualRequestAndLimit(compute, 'cpu')) return undefined;
  const cpus = integralCpus(requestOf(compute, 'cpu') ?? '0');
  return cpus !== undefined && cpus >= 1 && cpus < MAX_CPUS ? cpus : undefined;
}

/**
 * The CPUs that the launcher needs. KubeVirt's even parity counts a supplemental pool twice: with an odd pool and odd
 * vCPUs it renders one CPU fewer than virt-launcher later pins to. Rounding to whole cores corrects that, but without
 * SMT nothing is rounded. The correction applies only to a launcher exactly as KubeVirt rendered it; any other keeps
 * its own amount.
 */
function neededCpus(vmi: VmiShape, from: number): number {
  return launcherCpus(vmi).total === from ? Math.max(from, launcherNeeds(vmi)) : from;
}

function podFindings(pod: PodShape, compute: number, threadsPerCore: number, candidates: readonly number[]): Finding[] {
  const misaligned = integralContainers(pod)
    .filter(({ list, index }) => list !== 'containers' || index !== compute)
    .filter(({ cpus }) => !isAligned(cpus, threadsPerCore))
    .map(
      ({ name, cpus }): Finding => ({
        severity: 'warning',
        code: 'misaligned-container',
        message: `container ${name} asks for ${countText(cpus, 'exclusive CPU')}, no whole cores of ${threadsPerCore} threads: full-pcpus-only nodes reject the pod. Give it a multiple of ${threadsPerCore}, or a fraction for the shared pool`,
      }),
    );
  return [...mixedFinding(candidates, threadsPerCore), ...misaligned, ...obstacleFindings(pod, 'the launcher pod')];
}

function none(why: NoPadding, findings: readonly Finding[] = [], threadsPerCore?: number): Alignment {
  return { kind: 'none', why, threadsPerCore, findings };
}

/** Annotations of a VMI that affect the decision about its launcher. */
export const READ_ANNOTATIONS: readonly string[] = [NUMA_AFFINITY_ANNOTATION, EVEN_PARITY_ANNOTATION];

/** Multiples to which a launcher may have been rounded; 1 is for an unpadded one. */
const THREADS_PER_CORE = [1, 2, 4, 8];

/**
 * Whether KubeVirt could have rendered a launcher from this state of its VMI: the relevant annotations are equal, the
 * CPUs are the VMI's or a padded number of them, and every attached network belongs to the VMI. If not, the cached VMI
 * may be older than the pod and must be read again.
 * @param compute index of the container in spec.containers
 * @throws ParseError if an amount or the networks annotation is malformed
 */
export function fitsLauncher(pod: PodShape, compute: number, namespace: string, vmi: VmiShape): boolean {
  for (const name of READ_ANNOTATIONS) {
    if (pod.metadata.annotations?.[name] !== vmi.metadata.annotations?.[name]) return false;
  }
  if (vmi.spec.domain.cpu?.dedicatedCpuPlacement === true) {
    const container = pod.spec.containers[compute];
    const cpus = container && integralCpus(requestOf(container, 'cpu') ?? '0');
    const { total } = launcherCpus(vmi);
    if (!THREADS_PER_CORE.some((threads) => alignedCpus(total, threads) === cpus)) return false;
  }
  const text = pod.metadata.annotations?.[NETWORKS_ANNOTATION];
  if (text === undefined) return true;
  const own = new Set(
    (vmi.spec.networks ?? []).flatMap(({ multus }) =>
      multus ? [refText(parseRef(multus.networkName, namespace))] : [],
    ),
  );
  return parseAttachments(text, namespace).every((attachment) => own.has(refText(attachment)));
}
