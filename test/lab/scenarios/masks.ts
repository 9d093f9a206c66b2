import assert from 'node:assert/strict';
import * as z from 'zod';
import { CpuSet } from '../../../model/cpu-set.ts';
import { CPU_MASK_ANNOTATION } from '../../../model/names.ts';
import { NAMESPACE } from '../cluster.ts';
import { manifestOf } from '../pods.ts';
import { type GuestQemu, type GuestThreads, installQemu } from './guest-qemu.ts';
import type { Scenario, Scene } from './scenario.ts';

/** Seconds within which foreign changes must be corrected. */
const BOUND = 2;

/** The examples of Ganeti's design on the lab's eight CPUs, with the allowed CPUs of each vCPU's thread. */
const EXAMPLES: readonly [string, readonly string[]][] = [
  ['1:3', ['1', '3']],
  ['1-2:all', ['1-2', '0-7']],
  ['all:1,3-5:0', ['0-7', '1,3-5', '0']],
  ['0', ['0', '0']],
  ['all', ['0-7', '0-7']],
];

/** vCPUs are on the CPUs of their mask and the emulator on the rest, with the cgroups of a real kubelet. */
export const MASKS: Scenario = {
  name: 'masks',
  about: 'vCPUs of a real QEMU are pinned by masks, in the cgroups of a real kubelet and containerd',
  async play(scene) {
    const qemu = await installQemu(scene.lab);
    scene.undo(async () => {
      for (const name of ['bare', 'shared', 'dedicated']) await qemu.stop(name);
    });
    await bare(scene, qemu);
    await scene.agent.start();
    await shared(scene, qemu);
    await dedicated(scene, qemu);
  },
};

/** QEMU without Kubernetes. */
async function bare({ holds }: Scene, qemu: GuestQemu): Promise<void> {
  for (const [mask, expected] of EXAMPLES) {
    const { vcpus } = await qemu.start('bare', expected.length);
    await holds(
      `plumbline qemu --mask ${mask}: Cpus_allowed_list ${expected.join(' | ')}, then it runs`,
      async () => {
        assert.match(await qemu.plumbline('bare', mask), /the guest runs\nstatus 0/);
        assert.deepEqual(await qemu.allowed(vcpus), expected);
      },
      0,
    );
    await qemu.stop('bare');
  }
  const { vcpus } = await qemu.start('bare', 3);
  for (const mask of ['0:1', '2:1:1:all']) {
    await holds(`plumbline qemu --mask ${mask} for three vCPUs is refused, and nothing is pinned`, async () => {
      assert.match(await qemu.plumbline('bare', mask), /the guest was not resumed\nstatus 1/);
      assert.deepEqual(await qemu.allowed(vcpus), ['0-7', '0-7', '0-7']);
    });
  }
  await qemu.stop('bare');
}

/** A launcher on the shared pool. */
async function shared(scene: Scene, qemu: GuestQemu): Promise<void> {
  const { holds, lab } = scene;
  const path = await launcher(scene, 'shared', { requests: { cpu: '100m', memory: '64Mi' } }, '0-5:5,7:all');
  const { pid, vcpus } = await qemu.start('shared', 3);
  await lab.run(`echo ${pid} >${path}/cgroup.procs`);
  await holds('a mask is applied without the reserved CPUs 0-1, and reported', async () => {
    assert.deepEqual(await qemu.allowed(vcpus), ['2-5', '5,7', '2-7']);
    const { pinning } = await scene.report();
    assert.deepEqual(
      pinning?.map(({ podName, state, vcpus: n }) => [podName, state, n]),
      [['shared', 'pinned', 3]],
    );
  });
  await holds(
    'a foreign change is corrected within 2 s',
    async () => {
      const all = vcpus.map((tid) => `taskset -p ff ${tid} >/dev/null`).join('; ');
      const began = `${all}; s=$(date +%s%N); for i in $(seq 100); do`;
      const right = `[ "$(grep Cpus_allowed_list /proc/${vcpus[1]}/status | cut -f2)" = 5,7 ] && break; sleep 0.02; done`;
      const took = Number(await lab.run(`${began} ${right}; echo $((($(date +%s%N) - s) / 1000000))`)) / 1000;
      assert.ok(took < BOUND, `${took} s`);
      return `${took} s`;
    },
    0,
  );
  const other = await scene.pods.create('owner', { cpu: '2' });
  await holds('the VM leaves CPUs that another pod owns now', async () => {
    const owned = CpuSet.parse(await scene.pods.cpus(other));
    assert.equal(owned.size, 2);
    const left = ['2-5', '5,7', '2-7'].map((list) => CpuSet.parse(list).minus(owned).toString());
    assert.deepEqual(await qemu.allowed(vcpus), left);
    return `${owned} are the other’s, the vCPUs are on ${left.join(' | ')}`;
  });
  await scene.pods.remove(other);
  await qemu.stop('shared');
  await scene.cluster.remove('shared', 120);
}

/** A launcher with CPUs of its own: 2 vCPUs, 2 IO threads, the emulator, and the padding CPU. */
async function dedicated(scene: Scene, qemu: GuestQemu): Promise<void> {
  const { holds, lab } = scene;
  const path = await launcher(scene, 'dedicated', { limits: { cpu: '6', memory: '64Mi' } });
  const threads = await qemu.start('dedicated', 2, 2);
  await lab.run(`echo ${threads.pid} >${path}/cgroup.procs`);
  // As libvirt pins them by virt-launcher's choice of CPUs 2 to 7.
  const pins = [...threads.vcpus, ...threads.io].map((tid, i) => `taskset -p -c ${i + 2} ${tid} >/dev/null`);
  await lab.run(pins.join('; '));
  const house = `${path}/housekeeping`;
  await lab.run(
    `mkdir ${house} && echo threaded >${house}/cgroup.type && echo +cpuset >${path}/cgroup.subtree_control`,
  );
  await rewrite(scene, house, threads);
  const before = await lab.run(`ls ${path}; cat ${path}/cpuset.cpus`);
  for (const round of [1, 2, 3]) {
    await holds(
      `housekeeping has the CPUs without pins, IO threads keep their pins: round ${round} with a rewriter`,
      async () => {
        const found = await Promise.all(
          [threads.vcpus, threads.io, threads.emulator].map((tids) => qemu.allowed(tids)),
        );
        assert.deepEqual(
          [(await lab.run(`cat ${house}/cpuset.cpus`)).trim(), ...found.map((lists) => [...new Set(lists)].join(' '))],
          ['4-7', '2 3', '4 5', '6-7'],
        );
      },
      round === 1 ? 30 : BOUND + 1,
    );
    await rewrite(scene, house, threads);
  }
  await holds('the container’s own cgroup is unchanged', async () => {
    assert.equal(await lab.run(`ls ${path}; cat ${path}/cpuset.cpus`), before);
  });
  await qemu.stop('dedicated');
}

/** virt-handler's action at each sync: its cgroup has the emulator's pin, and contains all threads except vCPUs. */
async function rewrite({ lab }: Scene, house: string, { emulator, io }: GuestThreads): Promise<void> {
  const moves = [...emulator, ...io].map((tid) => `echo ${tid} >${house}/cgroup.threads`);
  const pins = emulator.map((tid) => `taskset -p -c 6 ${tid} >/dev/null`);
  await lab.run([`echo 6 >${house}/cpuset.cpus`, ...moves, ...pins].join('; '));
}

const launcherPod = z.object({
  status: z.object({ containerStatuses: z.array(z.object({ containerID: z.string() })).min(1) }),
});

/** A pod that passes all of the agent's checks for a launcher. @returns its container's cgroup */
async function launcher(scene: Scene, name: string, resources: object, mask?: string): Promise<string> {
  const { cluster, lab, node } = scene;
  const compute = { name: 'compute', resources: {} };
  const manifest = manifestOf({ spec: { containers: [compute], initContainers: [] } }, name, node.name);
  const owner = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    name,
    uid: `vmi-${name}`,
    controller: true,
  };
  await cluster.create({
    ...manifest,
    metadata: {
      name,
      labels: { 'kubevirt.io': 'virt-launcher' },
      annotations: mask === undefined ? {} : { [CPU_MASK_ANNOTATION]: mask },
      ownerReferences: [owner],
    },
    spec: { ...manifest.spec, containers: manifest.spec.containers.map((one) => ({ ...one, resources })) },
  });
  let path = '';
  await scene.holds(`the pod ${name} runs`, async () => {
    const { status } = launcherPod.parse(await cluster.client.get(`/api/v1/namespaces/${NAMESPACE}/pods/${name}`));
    const id = status.containerStatuses[0]?.containerID.split('://')[1] ?? '';
    path = (await lab.run(`find /sys/fs/cgroup -type d -name '*${id}*' | head -1`)).trim();
    assert.ok(id !== '' && path !== '');
  });
  return path;
}
