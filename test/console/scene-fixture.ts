import type { SwitchPicture } from '../../console/data/wire.ts';
import { unschedulable } from '../scheduler-plugin/extender-fixture.ts';
import { inventNode, maskedPod } from './cluster-fixture.ts';
import type { ConsoleFixture, ConsoleUnderTest } from './fixture.ts';
import { waitingPod } from './fixture.ts';

/** A demonstration cluster: a dead DPU, waiting VMs, a paused one, a mask, Events, Open vSwitch's threads. */
const NODES = 48;
const name = (index: number) => `worker-${index}.east.example.internal`;

/** Its DPU is dead. */
export const WITH_DPU = name(7);
/** Its first VM is paused. */
const WITH_PAUSED = 3;
/** Its agent reports where Open vSwitch's threads are. */
export const SWITCH_NODE = name(9);

/** Its agent is silent. */
export const SILENT_NODE = name(12);
/** It starts no VMs, and has no agent. */
export const CONTROL_PLANE = 'control-plane-1.east.example.internal';

const CONFIGURED = { allowed: '13,30-31', desired: '13,30-31', note: '' };
const LEFT_ALONE = { allowed: '1', desired: null, note: 'poll mode driver, left alone' };
const THREADS: SwitchPicture = {
  enabled: true,
  desired: '13,30-31',
  problems: [],
  threads: [
    { process: 'ovs-vswitchd', pid: 812, kind: 'handler', threads: 11, ...CONFIGURED },
    { process: 'ovs-vswitchd', pid: 812, kind: 'revalidator', threads: 5, ...CONFIGURED },
    { process: 'ovs-vswitchd', pid: 812, kind: 'pmd-c01/id:8', threads: 1, ...LEFT_ALONE },
    { process: 'ovsdb-server', pid: 640, kind: 'ovsdb-server', threads: 1, ...CONFIGURED },
  ],
};

interface Subject {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

function event(involvedObject: Subject, reason: string, message: string, time: string, more: object = {}): object {
  const { name, namespace = 'default' } = involvedObject;
  return {
    metadata: { name: `${name}.${reason}`, namespace, creationTimestamp: time },
    involvedObject,
    type: 'Normal',
    reason,
    message,
    count: 1,
    firstTimestamp: time,
    lastTimestamp: time,
    ...more,
  };
}

/** @param since creation time of the waiting VMs, in milliseconds since 1970 */
export async function dressed(
  open: (fixture: ConsoleFixture) => Promise<ConsoleUnderTest>,
  since = Date.parse('2026-05-04T10:00:00Z'),
): Promise<ConsoleUnderTest> {
  const at = (minutes: number) => new Date(since + minutes * 60_000).toISOString().replace('.000', '');
  const askSwitch = async (node: string) =>
    node === SWITCH_NODE ? { answer: THREADS } : { why: `no agent runs on node ${node}` };
  const under = await open({ invented: NODES, askSwitch });
  const names = Array.from({ length: NODES }, (_, index) => name(index));
  for (const [vm, cpus] of [['trader', 130] as const, ['upf', 96] as const]) {
    const pod = waitingPod(vm, cpus, at(-cpus / 3));
    under.see(pod, unschedulable(`0/${NODES} nodes are available: ${NODES} too few free whole cores.`));
    under.filter(pod, names);
  }
  const voice = waitingPod('voice', 12);
  under.see({ ...voice, spec: { ...voice.spec, nodeName: SWITCH_NODE } }, { phase: 'Pending' });
  under.node(WITH_DPU, { dpu: 'False', since: at(120), message: 'dead, last renewal 61 s ago' });

  under.node(CONTROL_PLANE, { isControlPlane: true });

  const masked = maskedPod({ namespace: 'core', name: 'masked', uid: 'uid-masked' }, '4:5', SWITCH_NODE);
  under.see(masked, { phase: 'Running', startTime: at(0) });

  await under.silence(SILENT_NODE, at(150));

  const [pausedVm] = inventNode(WITH_PAUSED).vms;
  under.api.put('virtualmachineinstances', {
    metadata: { namespace: pausedVm!.namespace, name: pausedVm!.name, uid: 'vmi-paused' },
    status: {
      phase: 'Running',
      nodeName: name(WITH_PAUSED),
      conditions: [{ type: 'Paused', status: 'True', reason: 'PausedByUser', lastTransitionTime: at(30) }],
    },
  } as never);

  const seen = (...facts: Parameters<typeof event>) => under.api.event(event(...facts));
  for (const { namespace, name: vm } of inventNode(7).vms) {
    const instance = { kind: 'VirtualMachineInstance', namespace, name: vm };
    seen(instance, 'PaddedToWholeCores', 'padded from 5 to 6 CPUs: 3 whole cores of 2 threads', at(1));
    const pod = { kind: 'Pod', namespace, name: `virt-launcher-${vm}-x2x4z` };
    seen(pod, 'Scheduled', `Successfully assigned ${namespace}/${pod.name} to ${WITH_DPU}`, at(0.5));
    const refused = `0/${NODES} nodes are available: 2 DPU not ready, 46 too few free whole cores.`;
    seen(pod, 'FailedScheduling', refused, at(0), { type: 'Warning', count: 3 });
  }
  const [dpuNode, switchNode] = [WITH_DPU, SWITCH_NODE].map((node) => ({ kind: 'Node', name: node }));
  seen(dpuNode!, 'DPUNotReady', 'The DPU is dead: last renewal 61 s ago', at(120), { type: 'Warning' });
  seen(dpuNode!, 'DPUReady', 'The DPU is ready: its lease is renewed', at(-400));
  seen(switchNode!, 'OVSThreadsMoved', 'moved 17 threads of Open vSwitch to CPUs 13,30-31', at(12));
  seen(switchNode!, 'NodeReady', 'Node is ready', at(-900));
  return under;
}
