import type { Simulation } from './simulate.ts';

/** Output of `plumbline simulate -o json`: docs/schemas/simulate.json. */
export function simulateData({ vms, ...result }: Simulation, fits: boolean, notes: readonly string[]) {
  return { fits, ...result, vms: vms.map((vm) => ({ ...vm, asked: vm.asked ?? null })), notes };
}
