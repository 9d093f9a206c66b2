import assert from 'node:assert/strict';
import { CpuSet, unionOf } from '../../../model/cpu-set.ts';
import { createHost } from '../../../model/host.ts';
import { launcherPinRequest, launcherPins } from '../../../model/launcher/pins.ts';
import { launcherCells } from '../../../model/launcher/qemu-threads.ts';
import type { Scene } from '../scenarios/scenario.ts';
import type { Machine } from './virtual-machine.ts';

/** The CPUs that the kubelet gave to the launcher's `compute`. */
export async function launcherCpus(scene: Scene, machine: Machine): Promise<CpuSet> {
  const { metadata } = await machine.launcher();
  return CpuSet.parse(await scene.pods.cpus({ name: metadata.name, uid: metadata.uid }));
}

/** The prediction of model/launcher: the CPU of each vCPU, and of the emulator. */
export async function predictedPins(scene: Scene, machine: Machine): Promise<ReturnType<typeof launcherPins>> {
  const host = createHost(await scene.report());
  return launcherPins(launcherPinRequest(await machine.vmi(), await launcherCpus(scene, machine), launcherCells(host)));
}

/** libvirt's own pins, from its description of the domain. */
export function libvirtPins(domain: string): {
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

/** Each vCPU's thread is on its own CPU, and every other one on all CPUs of the launcher without a vCPU. */
export async function assertThreads(scene: Scene, machine: Machine): Promise<string> {
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
