import assert from 'node:assert/strict';
import { parse, stringify } from 'yaml';
import * as z from 'zod';
import { CpuSet } from '../../../model/cpu-set.ts';
import { sleep } from '../../../runtime/time.ts';
import { KUBELET_ROOT } from '../guest.ts';
import { CPU_CHECKPOINT } from '../snapshot.ts';
import { assertOff, switchCpus, switchStatus } from './guest-switch.ts';
import { assertRuns } from './placement.ts';
import type { Scene } from './scenario.ts';
import type { ScenePod } from './scene-pods.ts';

/** Seconds: longer than the agent waits before it uses free CPUs, and before it checks held ones again. */
const LONG_ENOUGH = 25;

const CONFIG = '/etc/lab/kubelet.yaml';
const CHECKPOINT = `${KUBELET_ROOT}/${CPU_CHECKPOINT}`;

const kubeletConfig = z.looseObject({ kind: z.literal('KubeletConfiguration') });

/** Policy `none` accepts no options of the static one: a kubelet with such options does not start. */
const POLICY_NONE = { cpuManagerPolicy: 'none', cpuManagerPolicyOptions: undefined } as const;

const checkpoint = z.object({ policyName: z.string(), entries: z.record(z.string(), z.unknown()).nullish() });

/** A kubelet with policy `none` writes a checkpoint without owners while containers keep their CPUs. */
export async function keepsOffRunningContainers(scene: Scene): Promise<void> {
  const { holds, lab, pods, signal } = scene;
  const pod = await pods.create('runs-on', { cpu: '2' });
  await holds('a pod owns CPUs, and Open vSwitch is off them', async () => {
    await assertRuns(scene, pod);
    await assertOff(scene, await pods.cpus(pod));
  });
  const owned = await pods.cpus(pod);
  const back = await reconfigureKubelet(scene, POLICY_NONE);
  await holds(
    'a kubelet with policy none writes a checkpoint without owners, and the container keeps running',
    async () => {
      const text = await lab.run(`cat ${CHECKPOINT}`);
      const { policyName, entries } = checkpoint.parse(JSON.parse(text));
      assert.deepEqual([policyName, entries ?? {}], ['none', {}]);
      assert.equal(await cpusOfContainer(scene, pod), owned);
      return text.trim();
    },
  );
  await holds('the agent has read it, and reports whose CPUs it holds back', async () => {
    assert.equal((await scene.report()).cpuManager.policy, 'none');
    const { why } = await switchStatus(scene);
    const held = why.find((one) => /containers that hold them may still run/.test(one));
    assert.ok(held?.startsWith(`${owned}:`), why.join('; '));
    return held;
  });
  await sleep(LONG_ENOUGH, signal);
  assert.equal(await cpusOfContainer(scene, pod), owned);
  await holds('Open vSwitch is still off them', async () => {
    const used = CpuSet.parse(await switchCpus(scene));
    assert.ok(!used.intersects(CpuSet.parse(owned)), `${used}`);
  });
  await pods.remove(pod);
  await holds('after the container has ended, Open vSwitch uses its CPUs', () => assertOff(scene, ''));
  await back();
  await holds('with the static policy again, the agent reports that', async () => {
    assert.equal((await scene.report()).cpuManager.policy, 'static');
    return `Open vSwitch on ${await switchCpus(scene)}`;
  });
}

/** From the kernel's cgroup of the pod's only container. */
async function cpusOfContainer({ lab }: Scene, { uid }: ScenePod): Promise<string> {
  const slice = `*pod${uid.replaceAll('-', '_')}.slice`;
  const containers = `find /sys/fs/cgroup -path '${slice}/cri-containerd-*' -name cpuset.cpus.effective`;
  // The sandbox is on every CPU; the container is the younger one of the two.
  const files = (await lab.run(`ls -t $(${containers})`)).trim().split('\n');
  return (await lab.run(`cat ${files[0]}`)).trim();
}

/**
 * Restarts the kubelet with other settings and without the state of its CPU manager, as operators do, because a kubelet
 * with the state of another policy does not start. Pods keep running. At the end of the scenario it has its own
 * settings again.
 * @param settings of its configuration; undefined removes one
 * @returns a function that restores its settings before the end of the scenario
 */
async function reconfigureKubelet(
  { lab, undo }: Scene,
  settings: Readonly<Record<string, unknown>>,
): Promise<() => Promise<void>> {
  const before = await lab.run(`cat ${CONFIG}`);
  const configure = async (text: string) => {
    await lab.run(`systemctl stop kubelet && cat >${CONFIG} && rm -f ${CHECKPOINT} && systemctl start kubelet`, text);
  };
  let isOwn = false;
  const back = async () => {
    if (isOwn) return;
    isOwn = true;
    await configure(before);
  };
  undo(back);
  await configure(stringify({ ...kubeletConfig.parse(parse(before)), ...settings }));
  return back;
}
