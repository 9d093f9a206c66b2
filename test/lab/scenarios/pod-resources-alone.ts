import assert from 'node:assert/strict';
import { KUBELET_ROOT } from '../guest.ts';
import { CPU_CHECKPOINT } from '../snapshot.ts';
import { assertRuns } from './placement.ts';
import type { Scene } from './scenario.ts';
import { assertOff, switchStatus } from './switch-masks.ts';

/** The kubelet's directory for an agent that may not read the checkpoint. */
const DIRECTORY = '/var/lib/plumbline/lab-kubelet';

/** The agent has only the kubelet's PodResources API, and still clears owned CPUs and uses free ones. */
export async function followsPodResourcesAlone(scene: Scene): Promise<void> {
  const { agent, holds, lab, pods, undo } = scene;
  const links = ['pod-resources', 'device-plugins'].map((one) => `ln -s ${KUBELET_ROOT}/${one} ${DIRECTORY}/${one}`);
  undo(() => lab.run(`rm -rf ${DIRECTORY}`));
  await lab.run(`mkdir -p ${DIRECTORY} && ${links.join(' && ')}`);
  await lab.run(`install -m 000 /dev/null ${DIRECTORY}/${CPU_CHECKPOINT}`);
  const first = await pods.create('owner', { cpu: '2' });
  await holds('a pod owns CPUs', async () => {
    await assertRuns(scene, first);
    await assertOff(scene, await pods.cpus(first));
  });
  const owned = await pods.cpus(first);
  await agent.start('--kubelet-dir', DIRECTORY);
  await holds('an agent that may not read the checkpoint reports that, and uses the PodResources API', async () => {
    const { sources, desired } = await switchStatus(scene);
    const problems = new Map(sources.map(({ name, problem }) => [name, problem]));
    assert.match(problems.get('cpu_manager_state') ?? '', /EACCES/);
    assert.equal(problems.get('PodResources'), null);
    await assertOff(scene, owned);
    return `Open vSwitch belongs on ${desired}`;
  });
  const second = await pods.create('second-owner', { cpu: '2' });
  await holds('it moves Open vSwitch off the CPUs of a new pod', async () => {
    await assertRuns(scene, second);
    await assertOff(scene, `${owned},${await pods.cpus(second)}`);
    return `CPUs ${await pods.cpus(second)}`;
  });
  await pods.remove(second);
  await holds('and back to them after the pod has ended', () => assertOff(scene, owned));
  await pods.remove(first);
  await holds('and to all CPUs if no container owns any', () => assertOff(scene, ''));
  await agent.start();
}
