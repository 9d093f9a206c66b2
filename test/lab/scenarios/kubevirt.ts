import assert from 'node:assert/strict';
import { createHost } from '../../../model/host.ts';
import { CPU_MASK_ANNOTATION, FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import { FOREIGN_DEFINITIONS } from '../../real/webhook/crds.ts';
import { NAMESPACE } from '../cluster.ts';
import { missingKubeVirt } from '../kubevirt/assets.ts';
import { IMAGES_DISK, writeKubeVirtImages } from '../kubevirt/images.ts';
import { installKubeVirt } from '../kubevirt/installation.ts';
import { assertThreads, launcherCpus, libvirtPins, predictedPins } from '../kubevirt/pins.ts';
import { attachSwitchNetworks, NETWORKS, portsOf } from '../kubevirt/switch-network.ts';
import { sampleVcpus, whileTheGuestRan } from '../kubevirt/vcpu-sampler.ts';
import { assertBooted, createMachine } from '../kubevirt/virtual-machine.ts';
import { SCHEDULER, startControlDaemons } from './control-daemons.ts';
import { realMultus } from './guest-cni.ts';
import { wireSwitch } from './guest-switch.ts';
import type { Scenario, Scene } from './scenario.ts';
import { assertOff, enableAffinity } from './switch-masks.ts';

/** Seconds: a guest that QEMU emulates in an emulated machine took eleven minutes to boot on two free cores. */
const BOOTED = 3000;
/** Number of samples of the vCPUs of a running guest. */
const SAMPLES = 20;
/** 2 vCPUs and the emulator: 3 CPUs. */
const ODD = { cores: 1, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
const ANNOTATED = { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY };

/** The real KubeVirt with the real kubelet: VMs that boot under libvirt and QEMU. */
export const KUBEVIRT: Scenario = {
  name: 'kubevirt',
  about: 'real virt-handler, virt-launcher, libvirt and QEMU: VMs whose guests boot',
  missing: () =>
    missingKubeVirt() ?? (realMultus() === undefined ? 'name the folder with multus in MULTUS_ASSETS' : undefined),
  disks: async (places, say) => ({ [IMAGES_DISK]: await writeKubeVirtImages(places, say) }),
  async play(scene) {
    await wireSwitch(scene);
    await enableAffinity(scene);
    await installKubeVirt(scene);
    await scene.agent.start();
    await scene.holds('the agent reports', () => scene.report());
    await startControlDaemons(
      scene,
      FOREIGN_DEFINITIONS.filter(({ metadata }) => metadata.name.endsWith('.k8s.cni.cncf.io')),
    );
    await attachSwitchNetworks(scene);
    await boots(scene);
    await masked(scene);
  },
};

async function boots(scene: Scene): Promise<void> {
  const { holds } = scene;
  const machine = await createMachine(scene, 'aligned', {
    cpu: ODD,
    annotations: ANNOTATED,
    networks: [NETWORKS.physnet1],
    schedulerName: SCHEDULER,
  });
  await holds('with the annotation, its launcher is padded and runs', async () => {
    const { spec, status } = await machine.launcher();
    assert.equal(spec.containers.find(({ name }) => name === 'compute')?.resources.limits?.['cpu'], '4');
    assert.equal(status.phase, 'Running', await machine.state());
    return `CPUs ${await launcherCpus(scene, machine)}`;
  });
  await holds('libvirt runs it', async () => {
    assert.equal((await machine.vmi()).status?.phase, 'Running', await machine.state());
  });
  await holds('libvirt’s pins match the prediction', async () => {
    const { vcpus, emulator } = await predictedPins(scene, machine);
    const seen = libvirtPins(await machine.domain());
    assert.deepEqual(seen, { vcpus, emulator });
    return `vCPUs ${seen.vcpus.join(', ')}, emulator ${seen.emulator.join(', ')}`;
  });
  await holds('each vCPU is on its CPU, and every other thread on both CPUs of the emulator', () =>
    assertThreads(scene, machine),
  );
  await holds('its network is a port of the bridge of physnet1, whose NUMA node has its CPUs', async () => {
    const ports = await portsOf(scene, 'physnet1');
    assert.equal(ports.length, 1);
    const cpus = await launcherCpus(scene, machine);
    const { cells } = createHost(await scene.report());
    assert.deepEqual(
      cells.filter((one) => one.cpus.intersects(cpus)).map(({ id }) => id),
      [1],
    );
    return ports.join();
  });
  await holds('Open vSwitch is off all of them', async () => {
    const owned = await launcherCpus(scene, machine);
    await assertOff(scene, owned.toString());
    return `${owned}`;
  });
  await holds('the guest boots', () => assertBooted(machine), BOOTED);
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
