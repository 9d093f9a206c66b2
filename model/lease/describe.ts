import type { LeaseVerdict } from './observer.ts';

/** What a verdict on a DPU's lease means, for the person who reads an Event or a pod's message. */
export function describeLease(
  { state, age }: LeaseVerdict,
  { lease, duration }: { readonly lease: string; readonly duration: number },
): string {
  const seconds = age === undefined ? '' : `${Math.floor(age)} s`;
  switch (state) {
    case 'alive':
      return `its lease ${lease} was renewed ${seconds} ago`;
    case 'unproven':
      return `its lease ${lease} has not been seen renewed yet; check the agent on the DPU`;
    case 'dead':
      return `its lease ${lease} was last seen renewed ${seconds} ago, ${duration} s are allowed; check the DPU`;
    case 'unknown':
      return `the API server does not answer, and lease ${lease} was last seen renewed ${seconds} ago`;
  }
}
