import { alignedCpus, annotatedThreadsPerCore, isAligned } from '../alignment.ts';
import { type Finding, quote } from '../errors.ts';
import {
  ALIGN_ANNOTATION,
  ALIGN_WHOLE_CORES,
  CPU_MASK_ANNOTATION,
  FULL_PCPUS_ANNOTATION,
  FULL_PCPUS_ONLY,
  NUMA_AFFINITY_ANNOTATION,
} from '../names.ts';
import { NETWORKS_ANNOTATION } from '../networks/attachments.ts';
import type { GuestCpu, MetaShape, PodShape } from '../shapes.ts';
import { type IntegralContainer, integralContainers, isEqualRequestAndLimit, qosObstacles } from './containers.ts';
import { EVEN_PARITY_ANNOTATION } from './cpus.ts';

/**
 * Whether a VM asks for whole cores: by Plumbline's annotation, or by KubeVirt's, which KubeVirt sets on every VMI with
 * isolateEmulatorThread if AlignCPUs is on. For the latter KubeVirt itself only creates an even number of CPUs.
 */
export function wantsWholeCores({ annotations }: MetaShape): boolean {
  return (
    annotations?.[FULL_PCPUS_ANNOTATION] === FULL_PCPUS_ONLY || annotations?.[EVEN_PARITY_ANNOTATION] !== undefined
  );
}

/**
 * Findings about the annotation on a VM template, a VMI or a launcher, for its user. Empty if the annotation is absent
 * or fully effective.
 * @param cpu undefined: unknown, because an instancetype sets it
 */
export function annotationFindings(meta: MetaShape, cpu: GuestCpu | undefined, gate: boolean): readonly Finding[] {
  const value = meta.annotations?.[FULL_PCPUS_ANNOTATION];
  if (value === undefined) return [];
  if (value !== FULL_PCPUS_ONLY) {
    return [
      {
        severity: 'warning',
        code: 'unknown-annotation-value',
        message: `annotation ${FULL_PCPUS_ANNOTATION} has the unknown value ${quote(value)} and no effect: the only value is ${FULL_PCPUS_ONLY}`,
      },
    ];
  }
  if (!gate) return [noEffect('gate-off', "Plumbline's feature gate FullPCPUsOnly is off")];
  if (cpu === undefined) return [];
  if (cpu.dedicatedCpuPlacement !== true) {
    return [noEffect('no-effect-not-dedicated', 'the VM has no dedicatedCpuPlacement')];
  }
  if (cpu.isolateEmulatorThread !== true) {
    return [
      noEffect('no-effect-not-isolated', 'the VM has no isolateEmulatorThread, so its launcher gets no CPU added'),
    ];
  }
  return [];
}

function noEffect(code: string, why: string): Finding {
  return { severity: 'warning', code, message: `annotation ${FULL_PCPUS_ANNOTATION} has no effect: ${why}` };
}

interface AlignedContainer extends IntegralContainer {
  readonly to: number;
}

export interface OrdinaryAlignment {
  /** Every container with exclusive CPUs; empty if the pod has none. */
  readonly containers: readonly AlignedContainer[];
  readonly threadsPerCore: number;
  /** Errors say why the pod cannot have what it asks for. */
  readonly findings: readonly Finding[];
}

/** Whether a pod has the annotation that asks for whole cores, with any value. */
export function asksForAlignment(meta: MetaShape): boolean {
  return meta.annotations?.[ALIGN_ANNOTATION] !== undefined;
}

/** Whether the value of that annotation has an effect. */
export function asksForWholeCores(meta: MetaShape): boolean {
  return meta.annotations?.[ALIGN_ANNOTATION] === ALIGN_WHOLE_CORES;
}

/**
 * Decides the CPUs of an ordinary pod that asks for whole cores by annotation: every container with a whole number of
 * CPUs is rounded up, including init containers, because the kubelet checks each separately.
 * @throws ParseError if an amount in the pod is not a quantity
 */
export function decideOrdinary(
  pod: PodShape,
  candidates: readonly number[],
  policy: AlignmentPolicy,
): OrdinaryAlignment {
  const value = pod.metadata.annotations?.[ALIGN_ANNOTATION] ?? '';
  const threadsPerCore =
    policy === 'auto' && candidates.length > 0 ? Math.max(1, ...candidates) : annotatedThreadsPerCore(candidates);
  const nothing = (code: string, message: string): OrdinaryAlignment => ({
    containers: [],
    threadsPerCore,
    findings: [{ severity: 'warning', code, message }],
  });
  if (value !== ALIGN_WHOLE_CORES) {
    const message = `annotation ${ALIGN_ANNOTATION} has the unknown value ${quote(value)} and no effect: the only value is ${ALIGN_WHOLE_CORES}`;
    return nothing('unknown-annotation-value', message);
  }
  const integral = integralContainers(pod).filter(({ list, index }) =>
    isEqualRequestAndLimit(pod.spec[list]![index]!, 'cpu'),
  );
  if (integral.length === 0) {
    const message = `annotation ${ALIGN_ANNOTATION} has no effect: no container has a whole number of CPUs as request and limit`;
    return nothing('no-exclusive-cpus', message);
  }
  return {
    containers: integral.map((one) => ({ ...one, to: alignedCpus(one.cpus, threadsPerCore) })),
    threadsPerCore,
    findings: [
      ...obstacleFindings(pod, 'the pod'),
      ...(integral.some(({ cpus }) => !isAligned(cpus, threadsPerCore))
        ? mixedFinding(candidates, threadsPerCore)
        : []),
    ],
  };
}

/**
 * Why a pod does not get exclusive CPUs, with the next step. These are errors: the pod would have a promise of whole
 * cores and run on shared CPUs.
 */
export function obstacleFindings(pod: PodShape, what: string): readonly Finding[] {
  return qosObstacles(pod).map(({ container, why }) => ({
    severity: 'error',
    ...(container === undefined
      ? {
          code: 'pod-level-resources',
          message: `${what} gets no exclusive CPUs: ${why}. Remove spec.resources and set resources for each container`,
        }
      : {
          code: 'not-guaranteed',
          message: `container ${container} prevents exclusive CPUs for ${what}: ${why}. Give it CPU and memory limits, and equal requests`,
        }),
  }));
}

/** Information about differences between candidate nodes; it needs no correction. */
export function mixedFinding(candidates: readonly number[], threadsPerCore: number): readonly Finding[] {
  const kinds = [...new Set(candidates)].sort((a, b) => a - b);
  if (kinds.length < 2) return [];
  const message = `the full-pcpus-only nodes this pod can go to have ${kinds.join(' and ')} threads per core; it is aligned to ${threadsPerCore}`;
  return [{ severity: 'information', code: 'mixed-candidates', reason: 'MixedCandidates', message }];
}

/**
 * The annotations that opt in. A launcher without any of them changes only if the policy aligns all launchers, if it
 * has a required network or if it has a mask. The webhook configurations list the same names, so that no other launcher
 * waits for this webhook.
 */
export const ASKING: readonly string[] = [
  FULL_PCPUS_ANNOTATION,
  EVEN_PARITY_ANNOTATION,
  CPU_MASK_ANNOTATION,
  NETWORKS_ANNOTATION,
  NUMA_AFFINITY_ANNOTATION,
];

/** Whether a launcher, or the template it is rendered from, has one of these annotations. */
export function hasAsked({ annotations }: Pick<MetaShape, 'annotations'>): boolean {
  return ASKING.some((name) => annotations?.[name] !== undefined);
}

/**
 * Which launchers are aligned. `annotated`: those that opt in, to at least an even number. `always`: all, to the same.
 * `auto`: all, to the threads per core of the candidate nodes, so that no CPU is wasted without SMT.
 */
export const ALIGNMENT_POLICIES = ['annotated', 'always', 'auto'] as const;
export type AlignmentPolicy = (typeof ALIGNMENT_POLICIES)[number];

/** The reaction to a VM that is larger than the NUMA nodes of its networks on every node that it can run on. */
export const OVERSIZED_POLICIES = ['refuse', 'warn'] as const;
export type OversizedPolicy = (typeof OVERSIZED_POLICIES)[number];
