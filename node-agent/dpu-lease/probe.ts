import { findDaemons, isMissing } from '../ovs-affinity/daemons.ts';

/** Whether the DPU can do its work: undefined, or why not. */
export type Probe = (signal: AbortSignal) => Promise<string | undefined>;

/** Both daemons of Open vSwitch run, by their pidfiles. */
export function createProcessProbe(rundir: string): Probe {
  return async () => {
    const missing = findDaemons(rundir).filter(isMissing);
    return missing.length === 0 ? undefined : missing.map(({ message }) => message).join('; ');
  };
}
