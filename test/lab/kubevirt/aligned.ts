import assert from 'node:assert/strict';
import { createHost } from '../../../model/host.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import { SCHEDULER } from '../scenarios/control-daemons.ts';
import type { Scene } from '../scenarios/scenario.ts';
import { assertOff } from '../scenarios/switch-masks.ts';
import { assertThreads, launcherCpus, libvirtPins, predictedPins } from './pins.ts';
import { NETWORKS, portsOf } from './switch-network.ts';
import type { Machine, MachineOptions } from './virtual-machine.ts';

/** 2 vCPUs and the emulator: 3 CPUs, which Plumbline pads to 4, near physnet1. */
export const ALIGNED: MachineOptions = {
  cpu: { cores: 1, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true },
  annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY },
  networks: [NETWORKS.physnet1],
  schedulerName: SCHEDULER,
};

/** A VM of `ALIGNED` runs on the scene's machine, with everything that it requests. */
export async function runsAligned(scene: Scene, machine: Machine): Promise<void> {
  const { holds, node } = scene;
  await holds(`on ${node.name}, its launcher is padded and runs`, async () => {
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
}
