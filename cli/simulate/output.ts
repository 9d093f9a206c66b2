import type { Simulation } from './simulate.ts';

/** Output of `plumbline simulate -o json`: docs/schemas/simulate.json. */
export function simulateData(result: Simulation, fits: boolean, notes: readonly string[]) {
  const { nodes, cpus, splitCores, vms, placements } = result;
  return {
    fits,
    nodes,
    cpus,
    splitCores,
    vms: vms.map(({ asked, refusals, ...rest }) => ({ ...rest, asked: asked ?? null, refusals: { ...refusals } })),
    placements: Object.fromEntries(Object.entries(placements).map(([node, names]) => [node, [...names]])),
    notes: [...notes],
  };
}
