import type { LeaseVerdict } from './observer.ts';

/** The meaning of a verdict about a DPU's lease, for an Event or a pod's message. */
export function describeLease(
  { state, age }: LeaseVerdict,
  { lease, duration }: { readonly lease: string; readonly duration: number },
): string {
  const renewed = age === undefined ? 'has no observed renewal' : `was last renewed ${Math.floor(age)} s ago`;
  switch (state) {
    case 'alive':
      return `its lease ${lease} was renewed ${Math.floor(age ?? 0)} s ago`;
    case 'unproven':
      return `its lease ${lease} has no observed renewal yet; check the agent on the DPU`;
    case 'dead':
      return `its lease ${lease} ${renewed}; the limit is ${duration} s; check the DPU and the agent on it`;
    case 'unknown':
      return `the API server does not answer, and lease ${lease} ${renewed}`;
  }
}
