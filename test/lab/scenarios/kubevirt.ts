import assert from 'node:assert/strict';
import { CPU_MASK_ANNOTATION } from '../../../model/names.ts';
import { FOREIGN_DEFINITIONS } from '../../real/webhook/crds-fixture.ts';
import { NAMESPACE } from '../cluster.ts';
import { ALIGNED, runsAligned } from '../kubevirt/aligned.ts';
import { missingKubeVirt } from '../kubevirt/assets.ts';
import { IMAGES_DISK, writeKubeVirtImages } from '../kubevirt/images.ts';
import { installKubeVirt } from '../kubevirt/installation.ts';
import { attachSwitchNetworks } from '../kubevirt/switch-network.ts';
import { sampleVcpus, whileTheGuestRan } from '../kubevirt/vcpu-sampler.ts';
import { assertBooted, createMachine } from '../kubevirt/virtual-machine.ts';
import { SCHEDULER, startControlDaemons } from './control-daemons.ts';
import { realMultus } from './guest-cni.ts';
import { wireSwitch } from './guest-switch.ts';
import type { Scenario, Scene } from './scenario.ts';
import { enableAffinity } from './switch-masks.ts';

/** Seconds: a guest that QEMU emulates in an emulated machine took eleven minutes to boot on two free cores. */
const BOOTED = 3000;
/** Number of samples of the vCPUs of a running guest. */
const SAMPLES = 20;
/** What a scenario with the real KubeVirt needs. */
export const REAL_KUBEVIRT: Pick<Scenario, 'missing' | 'disks'> = {
  missing: () =>
    missingKubeVirt() ?? (realMultus() === undefined ? 'name the folder with multus in MULTUS_ASSETS' : undefined),
  disks: async (places, say) => ({ [IMAGES_DISK]: await writeKubeVirtImages(places, say) }),
};

/** The real KubeVirt with the real kubelet: VMs that boot under libvirt and QEMU. */
export const KUBEVIRT: Scenario = {
  name: 'kubevirt',
  about: 'real virt-handler, virt-launcher, libvirt and QEMU: VMs whose guests boot',
  ...REAL_KUBEVIRT,
  async play(scene) {
    await installWithKubeVirt(scene);
    await boots(scene);
    await masked(scene);
  },
};

/** The real KubeVirt and Plumbline around it, with networks of Open vSwitch, on every machine of the scene. */
export async function installWithKubeVirt(scene: Scene): Promise<void> {
  for (const machine of scene.machines) {
    await wireSwitch(machine);
    await enableAffinity(machine);
  }
  await installKubeVirt(scene);
  for (const { agent, node, holds, report } of scene.machines) {
    await agent.start();
    await holds(`the agent of ${node.name} reports`, report);
  }
  await startControlDaemons(
    scene,
    FOREIGN_DEFINITIONS.filter(({ metadata }) => metadata.name.endsWith('.k8s.cni.cncf.io')),
  );
  await attachSwitchNetworks(scene);
}

async function boots(scene: Scene): Promise<void> {
  const machine = await createMachine(scene, 'aligned', ALIGNED);
  await runsAligned(scene, machine);
  await scene.holds('the guest boots', () => assertBooted(machine), BOOTED);
  await machine.remove();
}

/** A VM on shared CPUs whose mask gives each vCPU one CPU. */
async function masked(scene: Scene): Promise<void> {
  const { holds } = scene;
  const sampler = await sampleVcpus(scene, `${NAMESPACE}_masked`);
  const machine = await createMachine(scene, 'masked', {
    cpu: { cores: 2 },
    annotations: { [CPU_MASK_ANNOTATION]: '4:6' },
    schedulerName: SCHEDULER,
  });
  await holds('a VM with the mask 4:6 starts paused, and is resumed once it is pinned', async () => {
    const { status } = await machine.vmi();
    assert.equal(status?.phase, 'Running', await machine.state());
    assert.equal(
      status.conditions?.find(({ type }) => type === 'Paused'),
      undefined,
      'it is paused',
    );
  });
  await holds(
    'its guest never ran on other CPUs',
    async () => {
      const seen = whileTheGuestRan(await sampler.samples());
      assert.deepEqual(
        [...new Set(seen.map(({ vcpu }) => vcpu))].toSorted(),
        [0, 1],
        'the second vCPU has not run yet',
      );
      assert.deepEqual(
        seen.filter(({ vcpu, allowed }) => allowed !== ['4', '6'][vcpu]),
        [],
      );
      assert.ok(seen.length >= SAMPLES, `${seen.length} samples so far`);
      return `${seen.length} samples`;
    },
    BOOTED,
  );
  await machine.remove();
}
