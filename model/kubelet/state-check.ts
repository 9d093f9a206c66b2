import { type CpuSet, unionOf } from '../cpu-set.ts';
import type { CpuAssignments } from './state.ts';
import { initialPool, type StaticPolicy } from './static-policy.ts';

/** The shared pool with which a starting kubelet continues, or the error with which it refuses to start. */
export type CheckedState = { readonly defaultSet: CpuSet } | { readonly error: string };

/**
 * Checks a stored CPU state as a kubelet does when it starts. A state that the kubelet refuses (a torn checkpoint, a
 * CPU that went offline) cannot be used for a prediction either.
 * Source: pkg/kubelet/cm/cpumanager/policy_static.go, validateState.
 */
export function checkState(policy: StaticPolicy, defaultSet: CpuSet, assignments: CpuAssignments): CheckedState {
  const { topology, options, reserved } = policy;
  if (defaultSet.isEmpty) {
    return assignments.size > 0 ? { error: 'default cpuset cannot be empty' } : { defaultSet: initialPool(policy) };
  }
  const shared = reserved.intersect(defaultSet);
  if (options.strictReservation && !shared.isEmpty) {
    return { error: `some of strictly reserved cpus: "${shared}" are present in defaultCpuSet: "${defaultSet}"` };
  }
  if (!options.strictReservation && !shared.equals(reserved)) {
    return { error: `not all reserved cpus: "${reserved}" are present in defaultCpuSet: "${defaultSet}"` };
  }
  for (const [pod, containers] of assignments) {
    for (const [container, cpus] of containers) {
      if (!cpus.intersects(defaultSet)) continue;
      const where = `pod: ${pod}, container: ${container}`;
      return { error: `${where} cpuset: "${cpus}" overlaps with default cpuset "${defaultSet}"` };
    }
  }
  const assigned = [...assignments.values()].flatMap((containers) => [...containers.values()]);
  const known = unionOf([defaultSet, ...assigned]);
  if (!known.equals(topology.cpus)) {
    return { error: `current set of available CPUs "${topology.cpus}" doesn't match with CPUs in state "${known}"` };
  }
  return { defaultSet };
}
