/**
 * The smallest threads-per-core count for the full-pcpus-only annotation. The annotation promises an even number of
 * CPUs, whatever the candidate nodes are.
 */
export const ANNOTATED_THREADS_PER_CORE = 2;

/**
 * `cpus` rounded up to whole cores. The input is the pod's request, not the guest's vCPUs: a second pass adds nothing,
 * and a pass over a pod that another webhook has rounded adds nothing either.
 */
export function alignedCpus(cpus: number, threadsPerCore: number): number {
  return Math.ceil(cpus / threadsPerCore) * threadsPerCore;
}

/** Whether `cpus` are whole cores, which the kubelet's full-pcpus-only option requires of every exclusive container. */
export function isAligned(cpus: number, threadsPerCore: number): boolean {
  return cpus % threadsPerCore === 0;
}

/**
 * The threads per core to align an annotated launcher to: the largest number that the kubelet of a candidate node
 * requires, at least 2. Nodes without a report do not count.
 */
export function annotatedThreadsPerCore(candidates: Iterable<number>): number {
  return Math.max(ANNOTATED_THREADS_PER_CORE, ...candidates);
}
