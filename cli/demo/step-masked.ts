import { CpuSet } from '../../model/cpu-set.ts';
import { qemuThreadRole } from '../../model/launcher/qemu-threads.ts';
import { CPU_MASK_ANNOTATION, PAUSED_START_ANNOTATION } from '../../model/names.ts';
import { VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../../sandbox/api-server/built-in-types.ts';
import { at, type KubeVmi } from '../../sandbox/objects.ts';
import { machineCpus } from '../../sandbox/qemu/guests.ts';
import type { DemoCluster } from './cluster.ts';
import { DEMO_NODES, MASK_NODE } from './nodes.ts';
import { kernelThreads } from './open-vswitch.ts';
import type { DemoContext } from './plumbline.ts';
import { expect, StepFailed, until } from './until.ts';
import { DEMO_NAMESPACE, eventsOf, maskedMachine, untilRunning } from './vms.ts';

const VM = 'pinned';
const VCPUS = 2;

/** The threads are real: the mask has CPUs of both the emulated node and this machine; with one CPU both share it. */
export async function maskedVmPinned({ cluster, printer }: DemoContext) {
  const node = cluster.node(MASK_NODE);
  const machine = await machineCpus();
  const reserved = CpuSet.parse(DEMO_NODES.find(({ name }) => name === MASK_NODE)?.reserved ?? '');
  const [first, second = first] = node.host.online.minus(reserved).intersect(machine);
  if (first === undefined) {
    printer.lines([`the demo may run on CPUs ${machine} only, and node ${node.name} has none of them: nothing to pin`]);
    return { pinned: false };
  }
  const refusal = await refusalOf(cluster, `${second}:${first}:${first}`);
  printer.lines([`mask for ${VCPUS + 1} of ${VCPUS} vCPUs: ${refusal}`]);
  const mask = `${second}:${first}`;
  await cluster.client.create(VIRTUAL_MACHINES, maskedMachine(VM, VCPUS, mask, node.name));
  const pod = await untilRunning(cluster, VM, 15);
  const strategy = at(instance(cluster), 'spec', 'startStrategy');
  expect(strategy === 'Paused', `expected the webhook to make the VM start paused, got ${String(strategy)}`);
  printer.lines([
    `annotation ${CPU_MASK_ANNOTATION}: "${mask}"; webhook: startStrategy Paused; runs on node ${pod.spec.nodeName}`,
  ]);

  const applied = await until('the agent to say that the mask is applied', 10, () =>
    eventOf(cluster, 'CPUMaskApplied'),
  );
  const threads = await kernelThreads(node.guestPids(pod.metadata.uid ?? ''));
  const vcpus = threads.filter(({ name }) => qemuThreadRole(name).kind === 'vcpu');
  const others = threads.filter((thread) => !vcpus.includes(thread));
  printer.lines([
    `node agent: ${applied}`,
    ...vcpus.map(({ tid, name, cpus }) => `thread ${tid} (${name}) may run on CPU ${cpus}, from /proc`),
    `${others.length} other threads of the process may run on ${[...new Set(others.map(({ cpus }) => cpus))].join(' and ')}`,
  ]);
  const observed = vcpus.map(({ cpus }) => cpus).join(':');
  expect(observed === mask, `expected the vCPU threads on CPUs ${mask}, saw ${observed}`);

  const resumed = await until('the extender to resume the VM', 10, () => eventOf(cluster, 'ResumedAfterPinning'));
  await until('the VM to run', 10, () => {
    const vmi = instance(cluster);
    const record = vmi.metadata.annotations?.[PAUSED_START_ANNOTATION];
    return record === 'resumed' && !isPaused(vmi) ? record : undefined;
  });
  printer.lines([`extender:   ${resumed}`]);
  return { pinned: true, mask, node: pod.spec.nodeName, refusal, vcpus, others: others.length };
}

async function refusalOf(cluster: DemoCluster, mask: string): Promise<string> {
  try {
    await cluster.client.create(VIRTUAL_MACHINES, maskedMachine('wrong', VCPUS, mask, MASK_NODE));
  } catch (error) {
    const { message } = error as Error;
    expect(
      /has entries for 3 vCPUs, but the VM has 2/.test(message),
      `expected a refusal of the mask, saw: ${message}`,
    );
    return message;
  }
  throw new StepFailed(`expected the mask ${mask} for ${VCPUS} vCPUs to be refused`);
}

function instance(cluster: DemoCluster): KubeVmi {
  const vmi = cluster.client.get(VIRTUAL_MACHINE_INSTANCES, DEMO_NAMESPACE, VM);
  expect(vmi !== undefined, `the VirtualMachineInstance ${VM} is gone`);
  return vmi;
}

function isPaused({ status }: KubeVmi): boolean {
  return status?.conditions?.some(({ type }) => type === 'Paused') === true;
}

function eventOf(cluster: DemoCluster, reason: string): string | undefined {
  return eventsOf(cluster, VM).find((event) => event.reason === reason)?.message;
}
