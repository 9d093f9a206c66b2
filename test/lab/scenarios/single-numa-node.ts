import assert from 'node:assert/strict';
import { reconfigureKubelet } from './guest-kubelet.ts';
import { launch, offerKvm } from './launchers.ts';
import { assertRuns, cellsOf, deviceCounts, unschedulable } from './placement.ts';
import type { Scene } from './scenario.ts';

/**
 * Two CPUs are free on NUMA node 0, four on node 1. The topology manager's policy decides whether a device of node 0
 * and CPUs of node 1 are accepted.
 */
export async function refusedAsPredicted(scene: Scene): Promise<void> {
  const { holds, cluster } = scene;
  const back = await reconfigureKubelet(scene, { topologyManagerPolicy: 'single-numa-node' });
  await holds('the kubelet changes to single-numa-node, and the report shows it', async () => {
    const { topologyManager } = await scene.report();
    assert.equal(topologyManager?.policy, 'single-numa-node');
    await cluster.readyNode(0, deviceCounts());
  });
  await offerKvm(scene);
  const wide = await launch(scene, 'wide', { cpu: '4', physnets: ['physnet0'] });
  await holds('a VM of 4 CPUs on physnet0 is not placed, because the kubelet would refuse it', async () => {
    const said = await unschedulable(scene, wide);
    assert.match(said, /NUMA/i);
    return said;
  });
  await scene.pods.remove(wide);
  const past = await launch(scene, 'wide-past', { cpu: '4', physnets: ['physnet0'], nodeName: scene.node.name });
  await holds('the kubelet refuses it without the scheduler', async () => {
    const said = await scene.pods.state(past);
    assert.match(said, /^Failed: TopologyAffinityError/);
    return said;
  });
  await scene.pods.remove(past);
  const prefers = await launch(scene, 'wide-prefers', {
    ...{ cpu: '4', physnets: ['physnet0'], affinity: { net1: 'preferred' } },
  });
  await holds('a VM that only prefers physnet0 is placed, and the kubelet accepts it on NUMA node 1', async () => {
    await assertRuns(scene, prefers);
    assert.equal(await cellsOf(scene, prefers), '1');
  });
  await scene.pods.remove(prefers);
  const narrow = await launch(scene, 'narrow', { cpu: '4' });
  await holds('a VM of 4 CPUs without a network is placed, and runs on NUMA node 1', async () => {
    await assertRuns(scene, narrow);
    assert.equal(await cellsOf(scene, narrow), '1');
  });
  await scene.pods.remove(narrow);
  await back();
}
