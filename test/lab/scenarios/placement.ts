import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { NAMESPACE } from '../cluster.ts';
import type { Scene } from './scenario.ts';
import type { ScenePod } from './scene-pods.ts';

export const PHYSNET0 = 'physnet.plumbline.dev/physnet0';
export const PHYSNET1 = 'physnet.plumbline.dev/physnet1';
const TUNNEL = 'plumbline.dev/tunnel';
/** The kubelet's default maxPods, which the lab does not change. */
const SLOTS = 110;
/** `physnet0 -> cell 0, …` after `wireSwitch`. */
export const FOUND = 'physnet0 -> cell 0, physnet1 -> cell 1, tunnel -> cell 1';

export function networksOf({ physnets = [], tunnel }: NodeTopologyStatus): string {
  return [...physnets, ...(tunnel ? [{ name: 'tunnel', ...tunnel }] : [])]
    .map(({ name, cells }) => `${name} -> cell ${cells}`)
    .join(', ');
}

export const deviceCounts = (change: Readonly<Record<string, number>> = {}): ReadonlyMap<string, number> =>
  new Map(
    Object.entries({ [PHYSNET0]: SLOTS, [PHYSNET1]: SLOTS, [TUNNEL]: SLOTS, 'plumbline.dev/placed': SLOTS, ...change }),
  );

export async function cellsOf(scene: Scene, pod: ScenePod): Promise<string> {
  const cpus = CpuSet.parse(await scene.pods.cpus(pod));
  const { cells } = createHost(await scene.report());
  return cells
    .filter((cell) => cell.cpus.intersects(cpus))
    .map(({ id }) => id)
    .join(', ');
}

export async function assertRuns({ pods }: Scene, pod: ScenePod): Promise<void> {
  assert.equal(await pods.state(pod), 'Running');
}

export async function unschedulable({ cluster }: Scene, pod: ScenePod): Promise<string> {
  const { status } = (await cluster.client.get(`/api/v1/namespaces/${NAMESPACE}/pods/${pod.name}`)) as {
    status: { conditions?: { type: string; status: string; message?: string }[] };
  };
  const placed = status.conditions?.find(({ type }) => type === 'PodScheduled');
  assert.equal(placed?.status, 'False');
  return placed.message ?? '';
}
