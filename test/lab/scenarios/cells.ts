import { wireSwitch } from './guest-switch.ts';
import { deviceCounts } from './placement.ts';
import type { Scenario } from './scenario.ts';
import { severalCells } from './several-cells.ts';

/** The effect of networks on several NUMA nodes with only the kubelet. */
export const CELLS: Scenario = {
  name: 'cells',
  about: 'pods with networks on both NUMA nodes get the CPUs that were predicted',
  async play(scene) {
    await wireSwitch(scene);
    await scene.agent.start();
    await scene.holds('the kubelet has the devices', () => scene.cluster.readyNode(0, deviceCounts()));
    await severalCells(scene);
  },
};
