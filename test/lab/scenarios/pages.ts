import assert from 'node:assert/strict';
import { deviceCounts } from '../devices.ts';
import { createGuest } from '../guest.ts';
import { bundlePlugin } from '../play-rounds.ts';
import type { Round } from '../rounds.ts';
import { startControlDaemons } from './control-daemons.ts';
import { type LauncherOptions, launch, offerKvm } from './launchers.ts';
import { assertRuns, unschedulable } from './placement.ts';
import type { Scenario, Scene } from './scenario.ts';
import type { ScenePod } from './scene-pods.ts';

/** Seconds from the kubelet's start until its node is Ready, in the emulation. */
const NODE_READY = 300;
const PAGES = 'hugepages-2Mi';
/** NUMA node 0 has one unreserved core, and 64 MiB in huge pages. */
const ROUND: Round = {
  name: 'pages',
  devices: 'none',
  topologyPolicy: 'best-effort',
  scope: 'container',
  cpuOptions: { 'full-pcpus-only': 'true' },
  reserved: '0-1',
  reservedMemory: [100, 300],
};
const TAKEN = '60Mi';
const WANTED = '40Mi';

/** A container that takes pages, on the NUMA node of CPU 0 if it may run there, and ends with an error without them. */
const takes = (amount: string, run: string) => ({
  image: 'lab/busybox:1',
  command: ['sh', '-c', `${run} fallocate -l ${Number.parseInt(amount, 10) * 2 ** 20} /pages/file && sleep 2147483647`],
  volumeMounts: [{ name: 'pages', mountPath: '/pages' }],
});
const VOLUMES = { volumes: [{ name: 'pages', emptyDir: { medium: 'HugePages' } }] };

/** The static memory manager counts only Guaranteed pods: another pod's pages are free for it, and not for the kernel. */
export const PAGES_SCENARIO: Scenario = {
  name: 'pages',
  about:
    'a Burstable pod takes huge pages that the memory manager counts as free; a VM is refused before it fails there',
  async play(scene) {
    const { lab, cluster, agent, signal, undo } = scene;
    const guest = createGuest(lab, signal);
    const version = await guest.kubeletVersion();
    undo(() => guest.restore());
    await guest.startPlugin(await bundlePlugin());
    await guest.configure(ROUND, version);
    await cluster.readyNode(NODE_READY, deviceCounts(ROUND), { version });
    await agent.start();
    await startControlDaemons(scene);
    await offerKvm(scene);
    const thief = await burstable(scene);
    const waits = await isRefused(scene);
    await failsOtherwise(scene);
    await scene.pods.remove(thief);
    await runsAfterwards(scene, waits);
  },
};

async function burstable(scene: Scene): Promise<ScenePod> {
  const { holds, pods, report } = scene;
  const main = { name: 'main', ...takes(TAKEN, 'taskset 1'), resources: {} };
  const resources = { requests: { memory: '8Mi' }, limits: { memory: '16Mi', [PAGES]: TAKEN } };
  const spec = { ...VOLUMES, containers: [{ ...main, resources }], restartPolicy: 'Never' };
  const pod = await pods.create('burstable', {}, spec);
  await holds('a Burstable pod takes pages of NUMA node 0', () => assertRuns(scene, pod));
  await holds('the report names them: the kubelet counts them as free', async () => {
    const { conditions = [], memoryManager } = await report();
    const [cell] = memoryManager?.cells ?? [];
    assert.equal(cell?.state?.free[PAGES], 64 * 2 ** 20);
    const said = conditions.find(({ type }) => type === 'HugePagesFree');
    assert.match(said?.message ?? '', /^60 MiB of 2Mi pages on NUMA node 0 are taken by processes/);
    return said?.message;
  });
  return pod;
}

const vm = (nodeName?: string): LauncherOptions => ({
  cpu: '2',
  container: takes(WANTED, ''),
  amounts: { [PAGES]: WANTED },
  spec: VOLUMES,
  ...(nodeName !== undefined && { nodeName }),
});

async function isRefused(scene: Scene): Promise<ScenePod> {
  const pod = await launch(scene, 'waits', vm());
  await scene.holds('a VM with such pages stays pending, with the reason', async () => {
    const said = await unschedulable(scene, pod);
    assert.match(said, /huge pages are taken by processes that did not reserve them/);
    return said;
  });
  return pod;
}

async function failsOtherwise(scene: Scene): Promise<void> {
  const { holds, pods } = scene;
  const pod = await launch(scene, 'past', vm(scene.node.name));
  await holds('one that bypasses the scheduler is admitted by the kubelet, and fails without its pages', async () => {
    const state = await pods.state(pod);
    assert.match(state, /^Failed: : /);
    return state;
  });
  await pods.remove(pod);
}

async function runsAfterwards(scene: Scene, pod: ScenePod): Promise<void> {
  await scene.holds('when the Burstable pod is gone, the VM is placed and has its pages', () => assertRuns(scene, pod));
  await scene.pods.remove(pod);
}
