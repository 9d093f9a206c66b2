import type { SwitchPicture } from '../../console/data/wire.ts';
import { CPU_MASK_ANNOTATION } from '../../model/names.ts';
import { inventNode, launcher } from './cluster-fixture.ts';
import type { ConsoleFixture, ConsoleUnderTest } from './fixture.ts';
import { unscheduled, waitingPod } from './fixture.ts';

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

interface EventFacts {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly reason: string;
  readonly message: string;
  readonly time: string;
  readonly type?: string;
  readonly count?: number;
}

function event({ kind, namespace, reason, message, time, type = 'Normal', count = 1, ...object }: EventFacts): object {
  return {
    metadata: { name: `${object.name}.${reason}`, namespace: namespace ?? 'default', creationTimestamp: time },
    involvedObject: { kind, name: object.name, ...(namespace !== undefined && { namespace }) },
    type,
    reason,
    message,
    count,
    firstTimestamp: time,
    lastTimestamp: time,
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
  for (const [vm, cpus] of [
    ['trader', 130],
    ['upf', 96],
  ] as const) {
    const pod = waitingPod(vm, cpus, at(-cpus / 3));
    under.see(pod, unscheduled(`0/${NODES} nodes are available: ${NODES} too few free whole cores.`));
    under.filter(pod, names);
  }
  const voice = waitingPod('voice', 12);
  under.see({ ...voice, spec: { ...voice.spec, nodeName: SWITCH_NODE } }, { phase: 'Pending' });
  under.node(WITH_DPU, { dpu: 'False', since: at(120), message: 'dead, last renewal 61 s ago' });

  under.node(CONTROL_PLANE, { isControlPlane: true });

  const masked = launcher({ namespace: 'core', name: 'masked', uid: 'uid-masked', count: 0, padding: 0 });
  const annotations = { ...masked.metadata.annotations, [CPU_MASK_ANNOTATION]: '4:5' };
  under.see(
    {
      ...masked,
      metadata: { ...masked.metadata, annotations, labels: { 'kubevirt.io': 'virt-launcher' } },
      spec: { containers: [{ name: 'compute', resources: { requests: { cpu: '200m' } } }], nodeName: SWITCH_NODE },
    } as never,
    { phase: 'Running', startTime: at(0) },
  );

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

  const vms = inventNode(7).vms;
  for (const { namespace, name: vm } of vms) {
    const about = { kind: 'VirtualMachineInstance', namespace, name: vm };
    const message = 'padded from 5 to 6 CPUs: 3 whole cores of 2 threads';
    under.api.event(event({ ...about, reason: 'PaddedToWholeCores', message, time: at(1) }));
    const pod = { kind: 'Pod', namespace, name: `virt-launcher-${vm}-x2x4z` };
    const bound = `Successfully assigned ${namespace}/${pod.name} to ${WITH_DPU}`;
    under.api.event(event({ ...pod, reason: 'Scheduled', message: bound, time: at(0.5) }));
    const refused = `0/${NODES} nodes are available: 2 DPU not ready, 46 too few free whole cores.`;
    under.api.event(
      event({ ...pod, reason: 'FailedScheduling', message: refused, time: at(0), type: 'Warning', count: 3 }),
    );
  }
  for (const [node, reason, message, minutes, type] of [
    [WITH_DPU, 'DPUNotReady', 'The DPU is dead: last renewal 61 s ago', 120, 'Warning'],
    [WITH_DPU, 'DPUReady', 'The DPU is ready: its lease is renewed', -400, 'Normal'],
    [SWITCH_NODE, 'OVSThreadsMoved', 'moved 17 threads of Open vSwitch to CPUs 13,30-31', 12, 'Normal'],
    [SWITCH_NODE, 'NodeReady', 'Node is ready', -900, 'Normal'],
  ] as const) {
    under.api.event(event({ kind: 'Node', name: node, reason, message, time: at(minutes), type }));
  }
  return under;
}
