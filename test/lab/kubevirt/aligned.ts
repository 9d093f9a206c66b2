import assert from 'node:assert/strict';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { launcherPinRequest, launcherPins } from '../../../model/launcher/pins.ts';
import { launcherCells } from '../../../model/launcher/qemu-threads.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import { SCHEDULER } from '../scenarios/control-daemons.ts';
import { assertOff } from '../scenarios/guest-switch.ts';
import type { Scene } from '../scenarios/scenario.ts';
import { NETWORKS, portsOf } from './switch-network.ts';
import type { Machine, MachineOptions } from './virtual-machine.ts';

/** 2 vCPUs and the emulator: 3 CPUs, which Plumbline pads to 4, near physnet1. */
export const ALIGNED: MachineOptions = {
  cpu: { cores: 1, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true },
  annotations: { [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY },
  networks: [NETWORKS.physnet1],
  schedulerName: SCHEDULER,
};

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

async function launcherCpus(scene: Scene, machine: Machine): Promise<CpuSet> {
  const { metadata } = await machine.launcher();
  return CpuSet.parse(await scene.pods.cpus({ name: metadata.name, uid: metadata.uid }));
}

/** The prediction of model/launcher: the CPU of each vCPU, and of the emulator. */
async function predictedPins(scene: Scene, machine: Machine): Promise<ReturnType<typeof launcherPins>> {
  const host = createHost(await scene.report());
  return launcherPins(launcherPinRequest(await machine.vmi(), await launcherCpus(scene, machine), launcherCells(host)));
}

function libvirtPins(domain: string): {
  readonly vcpus: readonly number[];
  readonly emulator: readonly number[];
} {
  const vcpus: number[] = [];
  for (const [, vcpu, cpuset] of domain.matchAll(/<vcpupin vcpu='(\d+)' cpuset='([^']+)'\/>/g)) {
    const [only, ...more] = CpuSet.parse(cpuset ?? '');
    assert.deepEqual(more, [], `vCPU ${vcpu} on ${cpuset}`);
    vcpus[Number(vcpu)] = only ?? -1;
  }
  const emulator = /<emulatorpin cpuset='([^']+)'\/>/.exec(domain)?.[1] ?? '';
  return { vcpus, emulator: CpuSet.parse(emulator).toArray() };
}

async function assertThreads(scene: Scene, machine: Machine): Promise<string> {
  const { vcpus } = await predictedPins(scene, machine);
  const rest = (await launcherCpus(scene, machine)).minus(CpuSet.of(vcpus));
  const threads = await machine.threads();
  const wrong = threads.filter(
    ({ role, allowed }) => allowed !== (role.kind === 'vcpu' ? String(vcpus[role.index]) : rest.toString()),
  );
  assert.deepEqual(wrong, []);
  const used = unionOf(threads.map(({ allowed }) => CpuSet.parse(allowed)));
  return `${threads.length} threads: vCPUs on ${vcpus.join(', ')}, the others on ${rest}; all of ${used}`;
}
