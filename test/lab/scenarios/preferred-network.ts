import assert from 'node:assert/strict';
import { nearResource, PLACEMENT_ANNOTATION, physnetResource } from '../../../model/names.ts';
import { preparedHost } from '../../../model/placement/needs.ts';
import { placementNeedsOf } from '../../../model/placement/pod-needs.ts';
import { formatPreferences, NO_PREFERENCES } from '../../../model/placement/preferences.ts';
import { judgeHost } from '../../../model/placement/verdict.ts';
import { sleep } from '../../../runtime/time.ts';
import { reconfigureKubelet } from './guest-kubelet.ts';
import { wireSwitch } from './guest-switch.ts';
import { assertRuns, cellsOf, deviceCounts, PHYSNET0, PHYSNET1 } from './placement.ts';
import type { Scenario, Scene } from './scenario.ts';
import type { ScenePod } from './scene-pods.ts';

const SLOTS = 110;
const NEAR = new Map([PHYSNET0, PHYSNET1].map((resource) => [nearResource(resource), SLOTS]));
/** A network that no agent ever served here. */
const NOWHERE = physnetResource('nowhere');
/** Seconds after which the kubelet has certainly received what the agent advertised before its report. */
const TAKEN_UP = 5;

/**
 * A preferred network is a hint for the kubelet while that does no harm (docs/adr/0053). The node has two free CPUs on
 * NUMA node 0, with physnet0, and four on node 1, with physnet1; without a hint the kubelet starts with node 0.
 */
export const PREFERRED: Scenario = {
  name: 'preferred',
  about: 'a preferred network draws a pod to its NUMA node, and never costs it its place or splits it',
  async play(scene) {
    await wireSwitch(scene);
    await scene.agent.start();
    await scene.holds('the kubelet has the devices', () => hasDevices(scene));
    await bestEffort(scene);
    for (const policy of ['restricted', 'single-numa-node']) await refusing(scene, policy);
  },
};

function hasDevices({ cluster }: Scene): Promise<unknown> {
  return cluster.readyNode(0, new Map([...deviceCounts(), ...NEAR]));
}

async function bestEffort(scene: Scene): Promise<void> {
  const { agent, holds, pods } = scene;
  const near = await prefers(scene, 'near', '2', PHYSNET1);
  await runsOn(scene, 'a pod that prefers physnet1, on an empty node', near, '1');
  await pods.remove(near);

  const fills = await prefers(scene, 'fills', '4', PHYSNET1);
  await runsOn(scene, 'one of 4 CPUs takes all of that NUMA node', fills, '1');
  const other = await prefers(scene, 'other', '2', PHYSNET1);
  await runsOn(scene, 'the next, whose NUMA node is full, is whole on the other', other, '0');
  await holds('without a warning', async () => {
    const events = await pods.events(other);
    assert.ok(!events.some((one) => one.startsWith('NetworkElsewhere')), events.join('; '));
  });
  await pods.remove(other);
  await pods.remove(fills);

  const wide = await prefers(scene, 'wide', '4', PHYSNET0);
  await runsOn(scene, 'one of 4 CPUs that prefers physnet0, whose NUMA node has 2, is whole on the other', wide, '1');
  await pods.remove(wide);

  const nowhere = await prefers(scene, 'nowhere', '2', NOWHERE);
  await runsOn(scene, 'one whose network the node never had runs where the kubelet begins', nowhere, '0');
  await pods.remove(nowhere);

  await agent.stop();
  const late = await prefers(scene, 'late', '2', PHYSNET1, false);
  await holds('while the agent is stopped, the kubelet refuses a pod that is bound without the scheduler', async () => {
    const said = await pods.state(late);
    assert.match(said, /^Failed: (?:UnexpectedAdmissionError|OutOfnear)/);
    return said;
  });
  await holds('and the Node shows that to the extender', () =>
    scene.cluster.readyNode(0, new Map([...NEAR.keys()].map((name) => [name, 0]))),
  );
  await pods.remove(late);
  await agent.start();
  await holds('after the agent is back, the kubelet has the devices again', () => hasDevices(scene));
}

async function refusing(scene: Scene, topologyManagerPolicy: string): Promise<void> {
  const { holds, pods } = scene;
  const back = await reconfigureKubelet(scene, { topologyManagerPolicy });
  await holds(`the kubelet changes to ${topologyManagerPolicy}, and the report shows it`, async () => {
    assert.equal((await scene.report()).topologyManager?.policy, topologyManagerPolicy);
    await hasDevices(scene);
  });
  const wide = await prefers(scene, `wide-${topologyManagerPolicy}`, '4', PHYSNET0);
  await runsOn(scene, 'a pod of 4 CPUs that prefers physnet0, whose NUMA node has 2, is not refused', wide, '1');
  await pods.remove(wide);
  const drawn = await prefers(scene, `drawn-${topologyManagerPolicy}`, '2', PHYSNET1);
  await runsOn(scene, 'one that prefers physnet1 runs where the kubelet begins', drawn, '0');
  await pods.remove(drawn);
  await back();
}

interface Preferring extends ScenePod {
  /** The CPUs predicted from the previous report. */
  readonly predicted: string;
}

/** A pod with the webhook's changes, bound to the node. */
async function prefers(
  scene: Scene,
  name: string,
  cpu: string,
  network: string,
  isReported = true,
): Promise<Preferring> {
  const resources = { cpu, [nearResource(network)]: '1' };
  const annotations = { [PLACEMENT_ANNOTATION]: formatPreferences({ ...NO_PREFERENCES, preferred: [network] }) };
  if (isReported) await reported(scene);
  const amounts = { memory: '16Mi', ...resources };
  const containers = [{ name: 'main', resources: { requests: amounts, limits: amounts } }];
  const needs = placementNeedsOf({ metadata: { uid: name, annotations }, spec: { containers } });
  const verdict = judgeHost(needs, preparedHost(await scene.report()), [], 'refuse');
  assert.ok(verdict.fits, verdict.fits ? '' : verdict.text);
  return { ...(await scene.pods.create(name, resources, {}, annotations)), predicted: `${verdict.cpus}` };
}

/** Until the report has the kubelet's owners; by then the agent has advertised the result. */
async function reported(scene: Scene): Promise<void> {
  await scene.holds('the report has every owner of CPUs, and the kubelet’s configuration', async () => {
    const { assignments, hintsNetworks, topologyManager } = await scene.report();
    assert.deepEqual([hintsNetworks, topologyManager !== undefined], [true, true]);
    const owners = assignments.map(({ podUID }) => podUID).sort();
    assert.deepEqual(owners, [...(await scene.pods.owners())].sort());
  });
  await sleep(TAKEN_UP);
}

function runsOn(scene: Scene, what: string, pod: Preferring, cell: string): Promise<unknown> {
  return scene.holds(`${what}: NUMA node ${cell}, as predicted`, async () => {
    await assertRuns(scene, pod);
    const cpus = await scene.pods.cpus(pod);
    assert.deepEqual([cpus, await cellsOf(scene, pod)], [pod.predicted, cell]);
    return `CPUs ${cpus}`;
  });
}
