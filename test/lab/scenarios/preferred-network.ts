import assert from 'node:assert/strict';
import { PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import { formatPreferences, NO_PREFERENCES } from '../../../model/placement/preferences.ts';
import { assertRuns, cellsOf, PHYSNET0, PHYSNET1 } from './placement.ts';
import type { Scene } from './scenario.ts';

/**
 * A preferred network is no device (docs/adr/0051), so the kubelet does not know of it: it never refuses a pod for it, and
 * on an empty node it begins with NUMA node 0, wherever the network is.
 */
export async function preferredNetwork(scene: Scene): Promise<void> {
  const { holds, pods } = scene;
  const prefers = (name: string, cpu: string, resource: string) => {
    const annotation = formatPreferences({ ...NO_PREFERENCES, preferred: [resource] });
    return pods.create(name, { cpu }, {}, { [PLACEMENT_ANNOTATION]: annotation });
  };
  const near = await prefers('prefers-node-1', '2', PHYSNET1);
  await holds('a pod that prefers physnet1, on an empty node: the kubelet begins with NUMA node 0', async () => {
    await assertRuns(scene, near);
    assert.equal(await cellsOf(scene, near), '0');
    return `CPUs ${await pods.cpus(near)}`;
  });
  const full = await prefers('prefers-full', '2', PHYSNET0);
  await holds(
    'a pod that prefers physnet0, whose NUMA node is full, runs on the other, without a warning',
    async () => {
      await assertRuns(scene, full);
      assert.equal(await cellsOf(scene, full), '1');
      const events = await pods.events(full);
      assert.ok(!events.some((one) => one.startsWith('NetworkElsewhere')), events.join('; '));
      return `CPUs ${await pods.cpus(full)}`;
    },
  );
  await pods.remove(full);
  await pods.remove(near);
  const wide = await prefers('prefers-too-narrow', '4', PHYSNET0);
  await holds(
    'a pod of 4 CPUs that prefers physnet0, whose NUMA node has 2, gets all of them on the other',
    async () => {
      await assertRuns(scene, wide);
      assert.equal(await cellsOf(scene, wide), '1');
      return `CPUs ${await pods.cpus(wide)}`;
    },
  );
  await pods.remove(wide);
}
