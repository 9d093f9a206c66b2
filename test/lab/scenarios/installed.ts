import assert from 'node:assert/strict';
import { isNotFound } from '../../../kube/client.ts';
import { CpuSet } from '../../../model/cpu-set.ts';
import { NAMESPACE } from '../cluster.ts';
import { startControlDaemons } from './control-daemons.ts';
import { assertOff, enableAffinity, RUNDIR, wireSwitch } from './guest-switch.ts';
import { createNetworks, launch, offerKvm } from './launchers.ts';
import { assertRuns, cellsOf, deviceCounts, FOUND, networksOf, unschedulable } from './placement.ts';
import type { Scenario, Scene } from './scenario.ts';

export const INSTALLED: Scenario = {
  name: 'installed',
  about:
    'the agent from its image by the shipped DaemonSet; VMs’ launchers through webhook, scheduler, kubelet and agent',
  daemonSet: true,
  async play(scene) {
    await wireSwitch(scene);
    await enableAffinity(scene);
    await unaligned(scene);
    await runsAsShipped(scene);
    await startControlDaemons(scene);
    await offerKvm(scene);
    await padded(scene);
    await besideNetworks(scene);
    await switchIsOff(scene);
    await severalNetworks(scene);
    await claims(scene);
  },
};

async function unaligned(scene: Scene): Promise<void> {
  const { holds, pods } = scene;
  const pod = await pods.create('unaligned', { cpu: '3' }, { restartPolicy: 'Never' });
  await holds('a launcher of 3 CPUs: the kubelet rejects it', async () => {
    const state = await pods.state(pod);
    assert.match(state, /^Failed: SMTAlignmentError: .*requested 3 cpus not multiple cpus per core = 2/);
    return state;
  });
  await pods.remove(pod);
}

async function runsAsShipped(scene: Scene): Promise<void> {
  const { holds, agent, cluster } = scene;
  await agent.start();
  const path = '/apis/apps/v1/namespaces/plumbline-system/daemonsets/plumbline-node-agent';
  await holds('the DaemonSet’s pod runs from its image and is ready', async () => {
    const { status } = (await cluster.client.get(path)) as { status: { numberReady: number } };
    assert.equal(status.numberReady, 1);
  });
  await holds('it has all permissions on the host and the API server: nothing was refused', async () => {
    const status = await scene.report();
    const bad = status.conditions?.filter((condition) => condition.status !== 'True');
    assert.deepEqual(bad, []);
    assert.equal(networksOf(status), FOUND);
    const refused = (await agent.log()).filter((line) => /forbidden|EPERM|EACCES/i.test(JSON.stringify(line)));
    assert.deepEqual(refused, []);
    return FOUND;
  });
  await holds('the kubelet has its devices', () => cluster.readyNode(0, deviceCounts()));
}

async function padded(scene: Scene): Promise<void> {
  const { holds, pods } = scene;
  const pod = await launch(scene, 'padded', { cpu: '3' });
  await holds('the same launcher through the webhook is padded, placed, and runs on whole cores', async () => {
    assert.equal(pod.limits['cpu'], '4');
    await assertRuns(scene, pod);
    const cpus = CpuSet.parse(await pods.cpus(pod));
    const { cores } = await scene.report();
    const used = cores.map((list) => CpuSet.parse(list)).filter((core) => core.intersects(cpus));
    assert.ok(used.every((core) => core.isSubsetOf(cpus)));
    return `limits.cpu ${pod.limits['cpu']}, CPUs ${cpus}`;
  });
  await pods.remove(pod);
}

async function besideNetworks(scene: Scene): Promise<void> {
  const { holds, pods } = scene;
  await createNetworks(scene, ['physnet0', 'physnet1']);
  for (const [physnet, cell] of [
    ['physnet1', '1'],
    ['physnet0', '0'],
  ] as const) {
    const pod = await launch(scene, `on-${physnet}`, { cpu: '2', physnets: [physnet] });
    await holds(`a VM on ${physnet} gets CPUs of NUMA node ${cell}`, async () => {
      await assertRuns(scene, pod);
      assert.equal(await cellsOf(scene, pod), cell);
      return `CPUs ${await pods.cpus(pod)}`;
    });
    await pods.remove(pod);
  }
}

async function switchIsOff(scene: Scene): Promise<void> {
  const { holds, pods, lab } = scene;
  const masks = `cat /proc/$(cat ${RUNDIR}/ovs-vswitchd.pid)/task/*/status | grep Cpus_allowed_list`;
  const pod = await launch(scene, 'looks', {
    cpu: '2',
    physnets: ['physnet0'],
    container: {
      image: 'lab/busybox:1',
      command: ['sh', '-c', `${masks}; trap exit TERM; sleep 2147483647 & wait`],
      volumeMounts: [{ name: 'ovs', mountPath: RUNDIR }],
    },
    spec: { hostPID: true, volumes: [{ name: 'ovs', hostPath: { path: RUNDIR } }] },
  });
  await holds('Open vSwitch is off a pod’s CPUs when its container’s first process looks', async () => {
    await assertRuns(scene, pod);
    const log = await lab.run(`cat /var/log/pods/${NAMESPACE}_${pod.name}_${pod.uid}/compute/*.log`);
    const seen = [...log.matchAll(/Cpus_allowed_list:\s+(\S+)/g)].map(([, list]) => CpuSet.parse(list!));
    const owned = CpuSet.parse(await pods.cpus(pod));
    assert.ok(seen.length > 2, log);
    for (const allowed of seen) assert.ok(!allowed.intersects(owned), `${allowed}, the pod has ${owned}`);
    return `${seen.length} threads on ${[...new Set(seen.map(String))].join(' ')}, the pod on ${owned}`;
  });
  await pods.remove(pod);
  await holds('and uses them again after the pod has ended', () => assertOff(scene, ''));
}

/** A guest that sees its NUMA nodes needs CPUs near each network: only with 6 CPUs it always has them here. */
async function severalNetworks(scene: Scene): Promise<void> {
  const { holds, pods } = scene;
  const guest = { physnets: ['physnet0', 'physnet1'], spansCells: true };
  const narrow = await launch(scene, 'spans-4', { cpu: '4', ...guest });
  await holds('a VM of 4 CPUs with a network on each NUMA node stays pending, with the reason', async () => {
    const said = await unschedulable(scene, narrow);
    assert.match(said, /the kubelet may put all 4 CPUs away from|only with more than 4 CPUs/);
    return said;
  });
  await pods.remove(narrow);
  const wide = await launch(scene, 'spans-6', { cpu: '6', ...guest });
  await holds('one of 6 CPUs is placed, and has CPUs on both', async () => {
    await assertRuns(scene, wide);
    assert.equal(await cellsOf(scene, wide), '0, 1');
    return `CPUs ${await pods.cpus(wide)}`;
  });
  await pods.remove(wide);
}

/** NUMA node 0 has one unreserved core. */
async function claims(scene: Scene): Promise<void> {
  const { holds, pods } = scene;
  const first = await launch(scene, 'first', { cpu: '2', physnets: ['physnet0'] });
  await holds('a VM takes the last core near physnet0', () => assertRuns(scene, first));
  const second = await launch(scene, 'second', { cpu: '2', physnets: ['physnet0'] });
  await holds('a second one stays pending, with the reason', async () => {
    const said = await unschedulable(scene, second);
    assert.match(said, /no room on the NUMA nodes of a required network/);
    return said;
  });
  const past = await launch(scene, 'past', { cpu: '2', physnets: ['physnet0'], nodeName: scene.node.name });
  await holds('one that bypasses the scheduler does not start, with the reason', async () => {
    const events = await pods.events(past);
    const own = events.find((one) => one.startsWith('NetworkElsewhere: '));
    assert.match(own ?? '', /physnet0 is on NUMA node 0, the kubelet gave CPUs \S+ on NUMA node 1; it is kept from/);
    return own;
  });
  await holds('the extender evicts it, so that KubeVirt creates another, which the scheduler then places', async () => {
    await assert.rejects(pods.state(past), isNotFound);
  });
  await pods.remove(first);
  await holds('when the first one is deleted, the second runs there', async () => {
    await assertRuns(scene, second);
    assert.equal(await cellsOf(scene, second), '0');
  });
  await pods.remove(second);
}
