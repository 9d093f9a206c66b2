/** The full-pcpus-only annotation promises an even number of CPUs, whatever the candidate nodes are. */
export const ANNOTATED_THREADS_PER_CORE = 2;

/** The input is the pod's request, not the guest's vCPUs: a second pass adds nothing. */
export function alignedCpus(cpus: number, threadsPerCore: number): number {
  return Math.ceil(cpus / threadsPerCore) * threadsPerCore;
}

/** Whether `cpus` are whole cores, which the kubelet's full-pcpus-only option requires of every exclusive container. */
export function isAligned(cpus: number, threadsPerCore: number): boolean {
  return cpus % threadsPerCore === 0;
}

/** The largest number that the kubelet of a candidate node requires, at least 2. */
export function annotatedThreadsPerCore(candidates: Iterable<number>): number {
  return Math.max(ANNOTATED_THREADS_PER_CORE, ...candidates);
}
