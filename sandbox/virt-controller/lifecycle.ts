import {
  at,
  isObject,
  type JsonObject,
  type KubeObject,
  type Pod,
  setCondition,
  type VirtualMachineInstance,
} from '../objects.ts';
import { FINALIZERS } from './holds.ts';

/** Whether a VirtualMachine should run: `running: true`, or a run strategy that keeps it up. */
export function isWanted(machine: KubeObject): boolean {
  const strategy = at(machine, 'spec', 'runStrategy');
  return (
    at(machine, 'spec', 'running') === true ||
    strategy === 'Always' ||
    strategy === 'RerunOnFailure' ||
    strategy === 'Once'
  );
}

/** The instance of a machine: its template, the template's labels and annotations, and none of the machine's own. */
export function instanceOf(machine: KubeObject): VirtualMachineInstance {
  const template = at(machine, 'spec', 'template');
  const spec = at(template, 'spec');
  const { name, namespace = 'default', uid = '' } = machine.metadata;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name,
      namespace,
      labels: at(template, 'metadata', 'labels') as Record<string, string>,
      annotations: at(template, 'metadata', 'annotations') as Record<string, string>,
      finalizers: [FINALIZERS.VirtualMachineInstance],
      ownerReferences: [
        { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: isObject(spec) ? structuredClone(spec) : {},
  };
}

/** The phase that a launcher pod's state gives its instance. An instance that has ended stays so. */
export function phaseOf(vmi: VirtualMachineInstance, pod: Pod | undefined): string {
  const before = vmi.status?.phase;
  if (before === 'Failed' || before === 'Succeeded') return before;
  switch (pod?.status?.phase) {
    case undefined:
      return before === 'Running' || before === 'Scheduled' ? 'Failed' : 'Pending';
    case 'Running':
      return 'Running';
    case 'Failed':
      return 'Failed';
    case 'Succeeded':
      return 'Succeeded';
    default:
      return pod?.spec.nodeName ? 'Scheduled' : 'Scheduling';
  }
}

const PAUSED = { type: 'Paused', status: 'True', reason: 'PausedByUser', message: 'VMI was paused by user' };

/** What virt-controller and virt-handler write of an instance. One that starts paused is so from when it first runs. */
export function instanceStatusOf(vmi: VirtualMachineInstance, phase: string, pod: Pod | undefined, time: string) {
  const status: NonNullable<VirtualMachineInstance['status']> = { ...vmi.status, phase };
  const { nodeName } = pod?.spec ?? {};
  if (nodeName) status.nodeName = nodeName;
  if (nodeName && pod?.metadata.uid) status.activePods = { [pod.metadata.uid]: nodeName };
  // That it could not be created is said until it is.
  const conditions = (status.conditions ?? []).filter(({ type }) => pod === undefined || type !== 'Synchronized');
  setCondition(conditions, { type: 'Ready', status: phase === 'Running' ? 'True' : 'False' }, time);
  const begins = phase === 'Running' && vmi.status?.phase !== 'Running';
  if (begins && at(vmi, 'spec', 'startStrategy') === 'Paused') setCondition(conditions, PAUSED, time);
  status.conditions = conditions;
  return status;
}

/** What a machine says of itself while its instance is in that phase; undefined: there is no instance. */
export function machineStatusOf(phase: string | undefined): JsonObject {
  const shown: Readonly<Record<string, string>> = { Running: 'Running', Failed: 'CrashLoopBackOff' };
  const printableStatus = phase === undefined ? 'Stopped' : (shown[phase] ?? 'Starting');
  return { printableStatus, created: phase !== undefined, ready: phase === 'Running' };
}
