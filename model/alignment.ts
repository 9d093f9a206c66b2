/**
 * The smallest threads-per-core count for the full-pcpus-only annotation. The annotation promises an even number of
 * CPUs, whatever the candidate nodes are.
 */
export const ANNOTATED_THREADS_PER_CORE = 2;

/**
 * Number of CPUs to add so that `cpus` becomes a multiple of `threadsPerCore`: (−cpus) mod threadsPerCore.
 *
 * The input is the pod's request, not the guest's vCPUs: a second pass adds nothing, and a pass over a pod that another
 * webhook has rounded adds nothing either.
 */
export function paddingCpus(cpus: number, threadsPerCore: number): number {
  assertWhole('CPU count', cpus, 0);
  assertWhole('threads per core', threadsPerCore, 1);
  return (threadsPerCore - (cpus % threadsPerCore)) % threadsPerCore;
}

/** `cpus` rounded up to whole cores. */
export function alignedCpus(cpus: number, threadsPerCore: number): number {
  return cpus + paddingCpus(cpus, threadsPerCore);
}

/** Whether `cpus` are whole cores, which the kubelet's full-pcpus-only option requires of every exclusive container. */
export function isAligned(cpus: number, threadsPerCore: number): boolean {
  return paddingCpus(cpus, threadsPerCore) === 0;
}

/**
 * The threads per core to align an annotated launcher to: the largest number that the kubelet of a candidate node
 * requires, at least 2. Nodes without a report do not count.
 */
export function annotatedThreadsPerCore(candidates: Iterable<number>): number {
  let threads = ANNOTATED_THREADS_PER_CORE;
  for (const candidate of candidates) threads = Math.max(threads, candidate);
  return threads;
}

function assertWhole(what: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least) {
    throw new RangeError(`${what} ${value}: expected a whole number of at least ${least}`);
  }
}
