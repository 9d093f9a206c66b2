import { isFinalPhase } from '../../kube/cluster-view/pods.ts';
import { MIGRATION_LABEL } from '../../model/launcher/recognize.ts';
import { formatTime } from '../../model/lease/timing.ts';
import type { WorkQueue } from '../../runtime/work-queue.ts';
import { PODS, type ResourceType, VIRTUAL_MACHINE_INSTANCES, VIRTUAL_MACHINES } from '../api-server/built-in-types.ts';
import { unlessNotFound } from '../api-server/errors.ts';
import type { LocalClient } from '../clients/local-client.ts';
import {
  at,
  isRecord,
  type JsonRecord,
  type KubeObject,
  type KubePod,
  type KubeVmi,
  listAt,
  type ObjectCondition,
  setCondition,
} from '../objects.ts';

/** KubeVirt's finalizers on its objects. virt-api sets that of an instance when it is created. */
const MACHINE_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';
const INSTANCE_FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';

const finalizerOf = ({ kind }: ResourceType) =>
  kind === VIRTUAL_MACHINES.kind ? MACHINE_FINALIZER : INSTANCE_FINALIZER;

/** Adds the finalizer, which keeps an object until `release`. Resolves to whether it exists and is not being deleted. */
export async function hold(client: LocalClient, type: ResourceType, object: KubeObject): Promise<boolean> {
  const finalizer = finalizerOf(type);
  const change = ({ metadata }: KubeObject) => {
    const { deletionTimestamp, finalizers = [] } = metadata;
    // A real API server refuses to add a finalizer to an object that is being deleted.
    if (!deletionTimestamp && !finalizers.includes(finalizer)) metadata.finalizers = [...finalizers, finalizer];
  };
  const present = await client.edit(type, object, change).catch(unlessNotFound);
  return present !== undefined && !present.metadata.deletionTimestamp;
}

/** Removes a finalizer of virt-controller. */
export async function release(
  client: LocalClient,
  type: ResourceType,
  object: KubeObject,
  finalizer = finalizerOf(type),
) {
  const change = ({ metadata }: KubeObject) => {
    metadata.finalizers = (metadata.finalizers ?? []).filter((name) => name !== finalizer);
  };
  await client.edit(type, object, change).catch(unlessNotFound);
}

/** The strategy of a VirtualMachine; `running: true` is an older form of Always. */
const strategyOf = (machine: KubeObject) =>
  at(machine, 'spec', 'running') === true ? 'Always' : String(at(machine, 'spec', 'runStrategy'));

const isWanted = (machine: KubeObject) => ['Always', 'RerunOnFailure', 'Once'].includes(strategyOf(machine));

function isStartedAgain(machine: KubeObject, phase: string | undefined): boolean {
  const strategy = strategyOf(machine);
  return isFinalPhase(phase) && (strategy === 'Always' || (strategy === 'RerunOnFailure' && phase === 'Failed'));
}

const MIN_PAUSE_SECONDS = 10;
const MAX_PAUSE_SECONDS = 300;

/** 10 n² and up to half as much at random. Source: KubeVirt, calculateStartBackoffTime in pkg/virt-controller/watch/vm/vm.go */
function startPauseSeconds(failures: number): number {
  const seconds = MIN_PAUSE_SECONDS * failures ** 2;
  return Math.min(MAX_PAUSE_SECONDS, seconds + Math.floor(Math.random() * (seconds / 2 + 1)));
}

/** The part of a machine's status about instances that end before they run. */
interface StartFailure {
  readonly consecutiveFailCount: number;
  readonly lastFailedVMIUID: string;
  /** RFC 3339. */
  readonly retryAfterTimestamp: string;
}

const hasRun = ({ status }: KubeVmi) =>
  ((status?.['phaseTransitionTimestamps'] ?? []) as { phase?: string }[]).some(({ phase }) => phase === 'Running');

function startFailureOf(machine: KubeObject, vmi: KubeVmi | undefined): StartFailure | undefined {
  const recorded = at(machine, 'status', 'startFailure') as StartFailure | undefined;
  if (!isWanted(machine)) return undefined;
  if (vmi === undefined) return recorded;
  if (hasRun(vmi)) return undefined;
  const { uid = '' } = vmi.metadata;
  if (!isFinalPhase(vmi.status?.phase) || recorded?.lastFailedVMIUID === uid) return recorded;
  const consecutiveFailCount = (recorded?.consecutiveFailCount ?? 0) + 1;
  const retryAt = Date.now() + startPauseSeconds(consecutiveFailCount) * 1000;
  return { consecutiveFailCount, lastFailedVMIUID: uid, retryAfterTimestamp: formatTime(retryAt) };
}

/** The template with the template's labels and annotations, and none of the machine's own. */
export function instanceOf(machine: KubeObject): KubeVmi {
  const template = at(machine, 'spec', 'template');
  const spec = at(template, 'spec');
  const { name, namespace = 'default', uid = '' } = machine.metadata;
  const apiVersion = 'kubevirt.io/v1';
  const owner = { apiVersion, kind: 'VirtualMachine', name, uid, controller: true, blockOwnerDeletion: true };
  return {
    apiVersion,
    kind: 'VirtualMachineInstance',
    metadata: {
      name,
      namespace,
      labels: at(template, 'metadata', 'labels') as Record<string, string>,
      annotations: at(template, 'metadata', 'annotations') as Record<string, string>,
      finalizers: [INSTANCE_FINALIZER],
      ownerReferences: [owner],
    },
    spec: isRecord(spec) ? structuredClone(spec) : {},
  };
}

/** The launchers of an instance, of which a migration has two. */
export function podsOf(client: LocalClient, vmi: KubeVmi): KubePod[] {
  return client.list(PODS).filter((pod) => pod.metadata.ownerReferences?.some(({ uid }) => uid === vmi.metadata.uid));
}

/** The launcher that has the guest, or is to start it: not the target of a migration before the hand-over. */
export function guestPodOf({ status }: KubeVmi, pods: readonly KubePod[]): KubePod | undefined {
  if (status?.nodeName === undefined) {
    return pods.find(({ metadata }) => metadata.labels?.[MIGRATION_LABEL] === undefined);
  }
  const there = pods.filter(({ spec }) => spec.nodeName === status.nodeName);
  // A guest that has come back leaves an ended launcher of its first stay.
  return there.find((pod) => !isFinalPhase(pod.status?.phase)) ?? there.at(-1);
}

/** The phase of an instance according to its launcher pod. An instance that has ended keeps its phase. */
export function phaseOf(vmi: KubeVmi, pod: KubePod | undefined): string {
  const before = vmi.status?.phase;
  if (isFinalPhase(before)) return before;
  const phase = pod?.status?.phase;
  if (phase === undefined) return before === 'Running' || before === 'Scheduled' ? 'Failed' : 'Pending';
  // The instance is Scheduled when its launcher is ready; virt-handler then runs the guest.
  return phase === 'Running' || isFinalPhase(phase) ? phase : 'Scheduling';
}

const PAUSED = { type: 'Paused', status: 'True', reason: 'PausedByUser', message: 'VMI was paused by user' };

/** KubeVirt's label with the node of the guest. */
export const NODE_NAME_LABEL = 'kubevirt.io/nodeName';

function migratability(vmi: KubeVmi): ObjectCondition {
  const has = (list: string) => listAt(vmi, 'spec', 'domain', 'devices', list).length > 0;
  if (!has('hostDevices') && !has('gpus')) return { type: 'LiveMigratable', status: 'True' };
  const message = 'VMI uses a PCI host devices';
  return { type: 'LiveMigratable', status: 'False', reason: 'HostDeviceNotLiveMigratable', message };
}

/**
 * As virt-controller and virt-handler write it. An instance that starts paused is paused from its first run; afterwards
 * only a migration changes its node.
 */
export function instanceStatusOf(vmi: KubeVmi, phase: string, guest: KubePod | undefined, pods: readonly KubePod[]) {
  const time = formatTime(Date.now());
  const status: NonNullable<KubeVmi['status']> = { ...vmi.status, phase };
  const begins = phase === 'Running' && vmi.status?.phase !== 'Running';
  if (begins && guest?.spec.nodeName) status.nodeName = guest.spec.nodeName;
  if (phase !== vmi.status?.phase) {
    const before = (vmi.status?.['phaseTransitionTimestamps'] ?? []) as JsonRecord[];
    status['phaseTransitionTimestamps'] = [...before, { phase, phaseTransitionTimestamp: time }];
  }
  const active = pods.filter((pod) => pod.spec.nodeName && pod.metadata.uid && !isFinalPhase(pod.status?.phase));
  if (active.length > 0) {
    status.activePods = Object.fromEntries(active.map((pod) => [pod.metadata.uid ?? '', pod.spec.nodeName ?? '']));
  }
  // The condition reports a failed creation until one succeeds.
  const conditions = (status.conditions ?? []).filter(({ type }) => guest === undefined || type !== 'Synchronized');
  setCondition(conditions, { type: 'Ready', status: phase === 'Running' ? 'True' : 'False' }, time);
  if (begins) setCondition(conditions, migratability(vmi), time);
  if (begins && at(vmi, 'spec', 'startStrategy') === 'Paused') setCondition(conditions, PAUSED, time);
  status.conditions = conditions;
  return status;
}

function machineStatusOf(phase: string | undefined, startFailure?: StartFailure): JsonRecord {
  let printableStatus = phase === 'Running' ? 'Running' : 'Starting';
  if (phase === undefined) printableStatus = 'Stopped';
  if (startFailure !== undefined && (phase === undefined || isFinalPhase(phase))) printableStatus = 'CrashLoopBackOff';
  return {
    printableStatus,
    created: phase !== undefined,
    ready: phase === 'Running',
    ...(startFailure && { startFailure: { ...startFailure } }),
  };
}

/** Brings one object up to date. Resolves to `refused` if the API server refused a write, which is then retried. */
export type Work = () => Promise<unknown>;

export function createMachineSync(client: LocalClient, queue: WorkQueue<Work>) {
  const end = async (machine: KubeObject, vmi: KubeVmi | undefined) => {
    if (!vmi) await release(client, VIRTUAL_MACHINES, machine);
    else if (!vmi.metadata.deletionTimestamp) await client.delete(VIRTUAL_MACHINE_INSTANCES, vmi);
  };
  const start = async (machine: KubeObject, pause: number) => {
    const { namespace = 'default', name } = machine.metadata;
    if (pause > 0) queue.addAfter(`vm/${namespace}/${name}`, () => sync(namespace, name), pause * 1000);
    else await client.create(VIRTUAL_MACHINE_INSTANCES, instanceOf(machine));
  };
  async function sync(namespace: string, name: string): Promise<void> {
    const machine = client.get(VIRTUAL_MACHINES, namespace, name);
    const vmi = client.get(VIRTUAL_MACHINE_INSTANCES, namespace, name);
    if (!machine) return;
    if (machine.metadata.deletionTimestamp) return end(machine, vmi);
    if (!(await hold(client, VIRTUAL_MACHINES, machine))) return;
    const startFailure = startFailureOf(machine, vmi);
    const pause = (Date.parse(startFailure?.retryAfterTimestamp ?? '') - Date.now()) / 1000;
    if (isWanted(machine) && !vmi) await start(machine, pause);
    const present = client.get(VIRTUAL_MACHINE_INSTANCES, namespace, name);
    const change = (draft: KubeObject) => {
      draft.status = machineStatusOf(present && (present.status?.phase ?? 'Pending'), startFailure);
    };
    // Before the deletion of the instance, so that each failure counts exactly once.
    await client.edit(VIRTUAL_MACHINES, machine, change, 'status');
    const isToGo = !isWanted(machine) || isStartedAgain(machine, vmi?.status?.phase);
    if (vmi && !vmi.metadata.deletionTimestamp && isToGo) await client.delete(VIRTUAL_MACHINE_INSTANCES, vmi);
  }
  return sync;
}
