import { withoutMemory } from './memory-manager.ts';
import { type KubeletState, withEntry } from './state.ts';
import { releaseCpus } from './static-policy.ts';

/**
 * The state after all containers of a pod are removed. An unknown uid changes nothing.
 * Source: RemoveContainer of the CPU and memory managers, UpdateAllocatedDevices of the device manager.
 */
export function removePod(state: KubeletState, uid: string): KubeletState {
  const containers = state.assignments.get(uid);
  let defaultSet = state.defaultSet;
  for (const cpus of containers?.values() ?? []) defaultSet = releaseCpus(defaultSet, cpus, []);
  return {
    ...state,
    defaultSet,
    assignments: containers ? withEntry(state.assignments, uid, new Map()) : state.assignments,
    devices: state.devices.has(uid) ? withEntry(state.devices, uid, new Map()) : state.devices,
    memory: state.memory && withoutMemory(state.memory, uid),
  };
}
