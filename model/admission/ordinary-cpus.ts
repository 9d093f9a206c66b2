import { alignedCpus, annotatedThreadsPerCore, isAligned } from '../alignment.ts';
import { type Finding, quote } from '../errors.ts';
import type { AlignmentPolicy } from '../launcher/annotation.ts';
import { type IntegralContainer, mixedFinding, obstacleFindings, type PodResources } from '../launcher/containers.ts';
import { askedMultiples } from '../launcher/smt-affinity.ts';
import { ALIGN_ANNOTATION, ALIGN_WHOLE_CORES, PLACED_RESOURCE } from '../names.ts';
import type { MetaShape } from '../shapes.ts';
import type { OrdinaryFacts, PodCpus } from './facts.ts';

/**
 * The CPUs of an ordinary pod that asks for whole cores: every container with exclusive CPUs is rounded up. The first
 * of them that keeps running requests the device resources, including the one that makes the scheduler call the
 * extender. Init containers do not qualify, because they have ended when the networks are in use. Only the decision
 * annotation records the change, since there is no VMI.
 */
export function cpusOfOrdinary({ pod, resources, cluster, settings }: OrdinaryFacts): PodCpus {
  const multiples = askedMultiples(cluster.candidates);
  const { containers, threadsPerCore, findings } = decideOrdinary(pod.metadata, resources, multiples, settings.policy);
  const exclusive = containers.length > 0 && !findings.some(({ severity }) => severity === 'error');
  return {
    exclusive,
    answered: exclusive,
    threadsPerCore,
    amounts: containers.map(({ list, to }) => ({ list, cpus: to })),
    containers: exclusive
      ? containers.map(({ list, index, cpus, to }) => ({ list, index, cpus: to === cpus ? undefined : to }))
      : [],
    bearer: containers.find(({ list }) => list === 'containers') ?? containers[0],
    own: [PLACED_RESOURCE],
    stated: Object.fromEntries(exclusive ? containers.map(({ name, to }) => [name, to]) : []),
    padding: 0,
    findings,
  };
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

/**
 * Decides the CPUs of an ordinary pod that asks for whole cores by annotation: every container with a whole number of
 * CPUs is rounded up, including init containers, because the kubelet checks each separately.
 */
export function decideOrdinary(
  metadata: MetaShape,
  resources: PodResources,
  candidates: readonly number[],
  policy: AlignmentPolicy,
): OrdinaryAlignment {
  const value = metadata.annotations?.[ALIGN_ANNOTATION] ?? '';
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
  const integral = resources.integral.filter(({ hasEqualLimit }) => hasEqualLimit);
  if (integral.length === 0) {
    const message = `annotation ${ALIGN_ANNOTATION} has no effect: no container has a whole number of CPUs as request and limit`;
    return nothing('no-exclusive-cpus', message);
  }
  return {
    containers: integral.map((container) => ({ ...container, to: alignedCpus(container.cpus, threadsPerCore) })),
    threadsPerCore,
    findings: [
      ...obstacleFindings(resources, 'the pod'),
      ...(integral.some(({ cpus }) => !isAligned(cpus, threadsPerCore))
        ? mixedFinding(candidates, threadsPerCore)
        : []),
    ],
  };
}
