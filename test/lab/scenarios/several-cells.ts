import assert from 'node:assert/strict';
import { PLACEMENT_ANNOTATION } from '../../../model/names.ts';
import { preparedHost } from '../../../model/placement/needs.ts';
import { exclusiveCpus } from '../../../model/placement/place.ts';
import { formatPreferences, NO_PREFERENCES, placementNeedsOf } from '../../../model/placement/preferences.ts';
import { judgeHost } from '../../../model/placement/verdict.ts';
import { assertRuns, cellsOf, PHYSNET0, PHYSNET1 } from './placement.ts';
import type { Scene } from './scenario.ts';

/** One network on each NUMA node, both required, of a guest that sees the NUMA nodes of its CPUs. */
const NETWORKS = { [PHYSNET0]: '1', [PHYSNET1]: '1' };
const ANNOTATIONS = { [PLACEMENT_ANNOTATION]: formatPreferences({ ...NO_PREFERENCES, spansCells: true }) };

/**
 * The prediction for guests with networks on both NUMA nodes matches the kubelet: the same CPUs, and a place is
 * promised only if they are on both nodes. Two CPUs are free on node 0, four on node 1.
 */
export async function severalCells(scene: Scene): Promise<void> {
  for (const cpu of ['2', '4', '6']) await agrees(scene, cpu);
}

async function agrees(scene: Scene, cpu: string): Promise<void> {
  const { holds, pods } = scene;
  await holds('no pod owns CPUs', async () => assert.deepEqual((await scene.report()).assignments, []));
  const host = preparedHost(await scene.report());
  const resources = { cpu, memory: '16Mi', ...NETWORKS };
  const shape = {
    metadata: { uid: 'predicted', annotations: ANNOTATIONS },
    spec: { containers: [{ name: 'main', resources: { requests: resources, limits: resources } }] },
  };
  const needs = placementNeedsOf(shape);
  assert.ok(!('unpredictable' in host.kubelet) && host.state !== undefined);
  const admission = host.kubelet.admit(host.state, needs.request);
  assert.ok(admission.admitted);
  const predicted = exclusiveCpus(admission.containers);
  const verdict = judgeHost(needs, host, [], 'refuse');
  const pod = await pods.create(`spans-${cpu}`, { cpu, ...NETWORKS }, {}, ANNOTATIONS);
  await holds(`${cpu} CPUs with devices of both NUMA nodes: the kubelet assigns the predicted ones`, async () => {
    assert.equal(await pods.cpus(pod), predicted.toString());
    return `CPUs ${predicted} on NUMA nodes ${await cellsOf(scene, pod)}`;
  });
  if (verdict.fits) {
    await holds('  it was promised, and runs on both NUMA nodes', async () => {
      await assertRuns(scene, pod);
      assert.equal(await cellsOf(scene, pod), '0, 1');
      assert.equal(verdict.cells.join(', '), '0, 1');
    });
  } else {
    const isOnBoth = host.host.cells.every((cell) => cell.cpus.intersects(predicted));
    await holds(`  it was not promised; without the scheduler it ${isOnBoth ? 'runs' : 'does not start'}`, async () => {
      if (isOnBoth) await assertRuns(scene, pod);
      else assert.match((await pods.events(pod)).join('; '), /NetworkElsewhere: /);
      return verdict.detail;
    });
  }
  await pods.remove(pod);
}
