import { alignedCpus, annotatedThreadsPerCore } from '../alignment.ts';
import { type Finding, quote } from '../errors.ts';
import { mixedFinding, obstacleFindings } from '../launcher/containers.ts';
import { askedMultiples } from '../launcher/smt-affinity.ts';
import { ALIGN_ANNOTATION, ALIGN_WHOLE_CORES, DECISION_ANNOTATION, PLACED_RESOURCE } from '../names.ts';
import type { MetaShape } from '../shapes.ts';
import { paddingOf } from './decision-annotation.ts';
import type { OrdinaryFacts, PodCpus } from './facts.ts';

/**
 * Every container with exclusive CPUs is rounded up, including init containers: the kubelet checks each separately. The
 * first that keeps running requests the device resources. Only the decision annotation records the change.
 */
export function cpusOfOrdinary({ pod, resources, cluster, settings: { policy } }: OrdinaryFacts): PodCpus {
  const candidates = askedMultiples(cluster.candidates);
  const threadsPerCore =
    policy === 'auto' && candidates.length > 0 ? Math.max(1, ...candidates) : annotatedThreadsPerCore(candidates);
  const integral = resources.integral.filter(({ hasEqualLimit }) => hasEqualLimit);
  const warning = noEffect(pod.metadata.annotations?.[ALIGN_ANNOTATION] ?? '', integral.length);
  const containers = (warning === undefined ? integral : []).map((container) => ({
    ...container,
    to: alignedCpus(container.cpus, threadsPerCore),
  }));
  const obstacles = warning === undefined ? obstacleFindings(resources, 'the pod') : [];
  const exclusive = warning === undefined && obstacles.length === 0;
  const isRounded = containers.some(({ cpus, to }) => to !== cpus);
  const stated = Object.fromEntries(exclusive ? containers.map(({ name, to }) => [name, to]) : []);
  const added = containers.reduce((sum, { cpus, to }) => sum + to - cpus, 0);
  return {
    exclusive,
    answered: exclusive,
    threadsPerCore,
    amounts: containers.map(({ list, to }) => ({ list, cpus: to })),
    containers: exclusive
      ? containers.map(({ list, index, cpus, to }) => ({ list, index, cpus: to === cpus ? undefined : to }))
      : [],
    bearer: containers.find(({ list }) => list === 'containers') ?? containers[0],
    plumblineResources: [PLACED_RESOURCE],
    stated,
    padding: added > 0 ? added : paddingBefore(pod.metadata, stated, threadsPerCore),
    findings: [
      ...(warning === undefined ? [] : [warning]),
      ...obstacles,
      ...(isRounded ? mixedFinding(candidates, threadsPerCore) : []),
    ],
  };
}

/** In a second pass: what the first one added, if its decision has the CPUs that the pod has now. */
function paddingBefore(metadata: MetaShape, stated: PodCpus['stated'], threadsPerCore: number): number {
  const text = metadata.annotations?.[DECISION_ANNOTATION] ?? '';
  const padding = text.startsWith(`{"cpus":${JSON.stringify(stated)},`) ? paddingOf(metadata) : 0;
  return padding <= (threadsPerCore - 1) * Object.keys(stated).length ? padding : 0;
}

/** Why the annotation with this value has no effect on a pod with so many containers with whole CPUs, or undefined. */
function noEffect(value: string, containers: number): Finding | undefined {
  if (value !== ALIGN_WHOLE_CORES) {
    const message = `annotation ${ALIGN_ANNOTATION} has the unknown value ${quote(value)} and no effect: the only value is ${ALIGN_WHOLE_CORES}`;
    return { severity: 'warning', code: 'unknown-annotation-value', message };
  }
  if (containers > 0) return undefined;
  const reason = 'no container has a whole number of CPUs as request and limit';
  return {
    severity: 'warning',
    code: 'no-exclusive-cpus',
    message: `annotation ${ALIGN_ANNOTATION} has no effect: ${reason}`,
  };
}
