import { alignedCpus, annotatedThreadsPerCore, isAligned } from '../alignment.ts';
import { quote } from '../errors.ts';
import { ALIGN_ANNOTATION, ALIGN_WHOLE_CORES } from '../names.ts';
import type { LauncherFinding } from './annotation.ts';
import { type IntegralContainer, integralContainers, isEqualRequestAndLimit, qosObstacles } from './containers.ts';
import type { AlignmentPolicy } from './policy.ts';
import type { MetaShape, PodShape } from './shapes.ts';

/** A container with exclusive CPUs, and its final number of CPUs. */
interface AlignedContainer extends IntegralContainer {
  readonly to: number;
}

export interface OrdinaryAlignment {
  /** Every container with exclusive CPUs; empty if the pod has none. */
  readonly containers: readonly AlignedContainer[];
  readonly threadsPerCore: number;
  /** Errors say why the pod cannot have what it asks for. */
  readonly findings: readonly LauncherFinding[];
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
  const nothing = (code: LauncherFinding['code'], message: string): OrdinaryAlignment => ({
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
export function obstacleFindings(pod: PodShape, what: string): readonly LauncherFinding[] {
  return qosObstacles(pod).map(({ container, why }) => ({
    severity: 'error',
    ...(container === undefined
      ? {
          code: 'pod-level-resources',
          message: `${what} gets no exclusive CPUs: ${why}. Remove spec.resources and set resources for each container`,
        }
      : {
          code: 'not-guaranteed',
          container,
          message: `container ${container} prevents exclusive CPUs for ${what}: ${why}. Give it CPU and memory limits, and equal requests`,
        }),
  }));
}

/** Information about differences between candidate nodes; it needs no correction. */
export function mixedFinding(candidates: readonly number[], threadsPerCore: number): readonly LauncherFinding[] {
  const kinds = [...new Set(candidates)].sort((a, b) => a - b);
  if (kinds.length < 2) return [];
  const message = `the full-pcpus-only nodes this pod can go to have ${kinds.join(' and ')} threads per core; it is aligned to ${threadsPerCore}`;
  return [{ severity: 'information', code: 'mixed-candidates', reason: 'MixedCandidates', message }];
}
