import assert from 'node:assert/strict';
import type { NodeTopologyStatus } from '../../../kube/node-topology.ts';
import { type GuestSwitch, wireSwitch } from './guest-switch.ts';
import { assertRuns, cellsOf, deviceCounts, FOUND, networksOf, PHYSNET0, PHYSNET1, TUNNEL } from './placement.ts';
import type { Scenario, Scene } from './scenario.ts';

const MAP = '/var/lib/plumbline/lab-networks.yaml';

/** The agent finds the networks of Open vSwitch, and the real kubelet places pods near them. */
export const NETWORKS: Scenario = {
  name: 'networks',
  about: 'physnets and tunnel are found, reported and advertised; pods get their CPUs there',
  async play(scene) {
    const wired = await wireSwitch(scene);
    await scene.agent.start();
    await reported(scene);
    await placed(scene);
    await claimed(scene);
    await changedLive(scene, wired);
    await overridden(scene);
    await scene.holds('the agent stops on a signal with status 0', async () => {
      assert.equal(await scene.agent.stop(), 0);
    });
  },
};

const conditionOf = ({ conditions }: NodeTopologyStatus, wanted: string) =>
  conditions?.find(({ type }) => type === wanted);

async function reported(scene: Scene): Promise<void> {
  const { holds, cluster, agent, node } = scene;
  await holds('the report has the networks', async () => {
    assert.equal(networksOf(await scene.report()), FOUND);
    return FOUND;
  });
  await holds('and the configuration of the running kubelet, from the kubelet itself', async () => {
    const { kubeletVersion, cpuManager, topologyManager, reserved, conditions = [] } = await scene.report();
    const bad = conditions.filter(({ status }) => status !== 'True');
    assert.deepEqual(bad, []);
    assert.equal(kubeletVersion, node.version);
    assert.equal(cpuManager.options?.['full-pcpus-only'], 'true');
    const read = (await agent.log()).find(({ msg }) => msg === 'kubelet configuration read');
    assert.match(String(read?.['source']), /\/configz$/);
    return `policy ${cpuManager.policy}, ${topologyManager?.policy}, reserved ${reserved}`;
  });
  await holds('the kubelet has as many devices of each as its maximum number of pods', async () => {
    await cluster.readyNode(0, deviceCounts());
  });
}

async function placed(scene: Scene): Promise<void> {
  const { holds, pods } = scene;
  const wishes: [string, string, string][] = [
    ['physnet0', PHYSNET0, '0'],
    ['physnet1', PHYSNET1, '1'],
    ['tunnel', TUNNEL, '1'],
  ];
  for (const [name, resource, cell] of wishes) {
    const pod = await pods.create(`wants-${name}`, { cpu: '2', [resource]: '1' });
    await holds(`a pod that requests ${name} runs on NUMA node ${cell}`, async () => {
      await assertRuns(scene, pod);
      assert.equal(await cellsOf(scene, pod), cell);
      return `CPUs ${await pods.cpus(pod)}`;
    });
    await holds('and the report names it', async () => {
      const { assignments } = await scene.report();
      const found = assignments.find(({ podUID }) => podUID === pod.uid);
      assert.deepEqual([found?.podName, found?.cpus], [pod.name, await pods.cpus(pod)]);
    });
    await pods.remove(pod);
  }
}

/** The Node object is updated late; a pod that is created before the devices exist again is refused. */
async function registered({ agent }: Scene, times = 1): Promise<void> {
  const lines = (await agent.log()).filter(({ msg }) => msg === 'device plugin registered with the kubelet');
  assert.equal(lines.length, times);
}

/** NUMA node 0 has one unreserved core: the second pod gets CPUs elsewhere under best-effort. */
async function claimed(scene: Scene): Promise<void> {
  const { holds, pods, agent } = scene;
  const first = await pods.create('first', { cpu: '2', [PHYSNET0]: '1' });
  await holds('the first pod gets the core near physnet0', () => assertRuns(scene, first));
  const second = await pods.create('second', { cpu: '2', [PHYSNET0]: '1' });
  const refused = /physnet physnet0 is on NUMA node 0, the kubelet gave CPUs \S+ on NUMA node 1/;
  await holds('the second pod does not start, with the reason', async () => {
    assert.match(await pods.state(second), /^CreateContainerConfigError|^CreateContainerError|^Pending/);
    const events = await pods.events(second);
    const own = events.find((one) => one.startsWith('NetworkElsewhere: '));
    assert.match(own ?? events.join('; '), refused);
    assert.match(own ?? '', /it does not start/);
    assert.ok(
      events.some((one) => one.startsWith('Failed: ') && refused.test(one)),
      events.join('; '),
    );
    return own;
  });
  await agent.start('--allocation-check', 'warn');
  await holds('with --allocation-check warn it starts, with an Event about the problem', async () => {
    await assertRuns(scene, second);
    const warned = (await pods.events(second)).find((one) => /it starts anyway/.test(one));
    assert.match(warned ?? '', refused);
  });
  await pods.remove(second);
  await pods.remove(first);
  await agent.start();
  await holds('the agent runs with its defaults again', () => registered(scene));
}

async function changedLive(scene: Scene, wired: GuestSwitch): Promise<void> {
  const { holds, lab, cluster, pods } = scene;
  const [, far] = wired.nics;
  const create = () => pods.create('stays', { cpu: '2', [PHYSNET1]: '1' });
  let stays = await create();
  await holds('a pod on physnet1', async () => {
    // The kubelet has a plugin's devices a moment after the plugin has registered; a pod that was created in between is
    // created again.
    if (/no healthy devices present/.test(await pods.state(stays))) {
      await pods.remove(stays);
      stays = await create();
    }
    await assertRuns(scene, stays);
  });
  await lab.run('systemctl restart kubelet');
  await holds('with a restarted kubelet the agent registers again', () => registered(scene, 2));
  await holds('so it has the devices', () => cluster.readyNode(0, deviceCounts()));
  await holds('and the pod keeps running', () => assertRuns(scene, stays));
  await wired.setLink(far, 'down');
  await holds('without a carrier, no new pod gets physnet1 or the tunnel', async () => {
    await cluster.readyNode(0, deviceCounts({ [PHYSNET1]: 0, [TUNNEL]: 0 }));
    const uplinks = conditionOf(await scene.report(), 'UplinksUp');
    assert.equal(uplinks?.status, 'False');
    await assertRuns(scene, stays);
    return uplinks.message;
  });
  await wired.setLink(far, 'up');
  await holds('with a carrier, new pods get them again', () => cluster.readyNode(0, deviceCounts()));
  await pods.remove(stays);

  await wired.map(1, 0);
  await holds('mappings are exchanged', async () => {
    assert.equal(networksOf(await scene.report()), 'physnet0 -> cell 1, physnet1 -> cell 0, tunnel -> cell 1');
  });
  const moved = await pods.create('moved', { cpu: '2', [PHYSNET0]: '1' });
  await holds('new pods run on the other NUMA node', async () => {
    await assertRuns(scene, moved);
    assert.equal(await cellsOf(scene, moved), '1');
    return `CPUs ${await pods.cpus(moved)}`;
  });
  await pods.remove(moved);
  await wired.map(0, 1);

  await wired.bond();
  await holds('a bond across the NUMA nodes is near both', async () => {
    assert.equal(networksOf(await scene.report()), 'physnet0 -> cell , physnet1 -> cell 0-1, tunnel -> cell 0-1');
  });
  await wired.unbond();
  await holds('the two ports are separate again', async () => assert.equal(networksOf(await scene.report()), FOUND));
}

async function overridden(scene: Scene): Promise<void> {
  const { holds, lab, agent, pods, undo } = scene;
  const write = (text: string) => lab.run(`cat >${MAP}.tmp && mv ${MAP}.tmp ${MAP}`, text);
  undo(() => lab.run(`rm -f ${MAP}`));
  await write('physnets: {physnet1: {numaNodes: [0]}}\n');
  await agent.start('--network-map', MAP);
  await holds('a map overrides what the agent finds, and the agent reports the difference', async () => {
    const status = await scene.report();
    assert.equal(networksOf(status), 'physnet0 -> cell 0, physnet1 -> cell 0, tunnel -> cell 1');
    const agrees = conditionOf(status, 'NetworkMapAgrees');
    assert.equal(agrees?.reason, 'Drift');
    return agrees.message;
  });
  await holds('with devices for it', () => registered(scene));
  const pod = await pods.create('mapped', { cpu: '2', [PHYSNET1]: '1' });
  await holds('the kubelet uses it', async () => {
    await assertRuns(scene, pod);
    assert.equal(await cellsOf(scene, pod), '0');
    return `CPUs ${await pods.cpus(pod)}`;
  });
  await pods.remove(pod);
  await write('physnets: {physnet1: {numaNodes: [7]}}\n');
  await holds('a typo in the map keeps the last good one in use, and is reported', async () => {
    const status = await scene.report();
    assert.equal(networksOf(status), 'physnet0 -> cell 0, physnet1 -> cell 0, tunnel -> cell 1');
    const valid = conditionOf(status, 'NetworkMapValid');
    assert.equal(valid?.reason, 'InvalidMap');
    return valid.message;
  });
}
