import type * as z from 'zod';
import { isOfMachine } from '../kube/cluster-view/vmis.ts';
import type { NodeTopologyStatus, RefusedStart } from '../kube/node-topology.ts';
import { REJECTIONS } from '../model/kubelet/provider.ts';
import { AGENT, SERVICE } from '../model/names.ts';
import type { PlacementHost } from '../model/placement/needs.ts';
import type { MetaShape } from '../model/shapes.ts';
import {
  type Conditions,
  findCondition,
  type InstanceFacts,
  type MachineFacts,
  type MigrationFacts,
  type NodeStateFacts,
  pauseOf,
  type RejectionFacts,
  type VmFacts,
} from './facts.ts';
import { networkMapFault } from './hosts.ts';
import {
  type DpuFacts,
  type ExplainedMigration,
  type ExplainedPod,
  type ExplainedVm,
  type ExplainedVmi,
  type migrationState,
  millisecondsOf,
  type Occurrence,
  timeOf,
} from './objects.ts';

/** The facts that determine the state of a VM (diagnosis/), from objects of the API server. */

/** The reason of a kubelet's Event if a CNI plugin failed. */
const SANDBOX_FAILURE = 'FailedCreatePodSandBox';

/** Seconds after which a rejection is outdated: more than KubeVirt's longest delay between two starts. */
const REJECTION_SECONDS = 600;

export function kindOf(vmi: ExplainedVmi | undefined, vm?: ExplainedVm): VmFacts['kind'] {
  if (vm !== undefined) return 'vm';
  if (vmi === undefined) return undefined;
  return isOfMachine(vmi.metadata) ? 'vm' : 'vmi';
}

/** Some fields of a status, of which the console reads the conditions with other bounds. */
type StatusOf<T extends { readonly status?: object | undefined }, Field extends keyof NonNullable<T['status']>> =
  | (Partial<Pick<NonNullable<T['status']>, Field>> & { readonly conditions?: Conditions })
  | null
  | undefined;

interface RunnableVm {
  readonly spec: Pick<ExplainedVm['spec'], 'running' | 'runStrategy'>;
  readonly status?: StatusOf<ExplainedVm, 'printableStatus' | 'startFailure'>;
}

interface StartingVmi {
  readonly metadata: MetaShape & { readonly deletionTimestamp?: string | undefined };
  readonly status?: StatusOf<ExplainedVmi, 'phase' | 'reason' | 'nodeName' | 'evacuationNodeName'>;
}

/** @param now milliseconds since 1970 */
export function machineFacts({ spec, status }: RunnableVm, now: number): MachineFacts {
  const { running, runStrategy } = spec;
  const restart = findCondition(status?.conditions, 'RestartRequired');
  const { consecutiveFailCount, retryAfterTimestamp } = status?.startFailure ?? {};
  return {
    shouldRun: running === true || (runStrategy != null && !['Halted', 'Manual'].includes(runStrategy)),
    says: status?.printableStatus ?? '',
    failure: findCondition(status?.conditions, 'Failure')?.message,
    failures: consecutiveFailCount ?? 0,
    retryIn: Math.max(0, (Date.parse(retryAfterTimestamp ?? '') - now) / 1000) || 0,
    ...(restart && { restartRequired: restart.message ?? '' }),
  };
}

/** KubeVirt's conditions of a change that the running instance gets by a migration. */
const CHANGES = [
  ['HotVCPUChange', 'its number of vCPUs'],
  ['HotMemoryChange', 'its memory'],
  ['VolumesChange', 'its volumes'],
  ['MigrationRequired', 'its network interfaces'],
] as const;

export function instanceFacts({ metadata, status }: StartingVmi): InstanceFacts {
  const conditions = status?.conditions ?? [];
  const synchronized = conditions.find(({ type }) => type === 'Synchronized');
  const refusal = synchronized?.status === 'False' ? synchronized.message : undefined;
  return {
    phase: status?.phase ?? 'Pending',
    reason: status?.reason ?? undefined,
    refusal: refusal || undefined,
    pause: pauseOf({ metadata, status }),
    node: status?.nodeName || undefined,
    deleting: metadata.deletionTimestamp !== undefined,
    changes: CHANGES.filter(([type]) => findCondition(conditions, type)).map(([, text]) => text),
    evacuatedFrom: status?.evacuationNodeName || undefined,
    notMigratable: notMigratable(conditions),
  };
}

/** From KubeVirt's condition; '' if it does not say why, undefined if the instance can migrate or that is not known. */
export function notMigratable(conditions: Conditions): string | undefined {
  const condition = findCondition(conditions, 'LiveMigratable', 'False');
  return condition && (condition.message ?? condition.reason ?? '');
}

type MigrationStatus = NonNullable<z.infer<typeof migrationState>>;

const isFinal = ({ status }: ExplainedMigration): boolean => ['Succeeded', 'Failed'].includes(status?.phase ?? '');

/**
 * The current migration, else the newest one.
 * @param recorded status.migrationState of the instance @param migrations of the instance; undefined: not readable
 */
export function migrationFacts(
  recorded: MigrationStatus | null | undefined,
  migrations: readonly ExplainedMigration[] = [],
): MigrationFacts | undefined {
  const time = ({ metadata }: ExplainedMigration) => millisecondsOf(metadata.creationTimestamp);
  const newest = [...migrations].sort((a, b) => time(b) - time(a));
  const latest = newest.find((one) => !isFinal(one)) ?? newest[0];
  // A cancelled migration is deleted before its record and its launcher end.
  const isDeleted = !migrations.some(({ metadata }) => metadata.uid === recorded?.migrationUid);
  const isOutdated = latest && isFinal(latest) && isDeleted && millisecondsOf(recorded?.startTimestamp) > time(latest);
  const object = isOutdated ? undefined : latest;
  const isRecorded = object === undefined || recorded?.migrationUid === object.metadata.uid;
  const state = isRecorded ? recorded : object.status?.migrationState;
  if (object === undefined && !state?.migrationUid) return undefined;
  return {
    uid: object?.metadata.uid ?? state?.migrationUid ?? undefined,
    name: object?.metadata.name,
    ...progressOf(object, state ?? {}),
  };
}

function progressOf(
  object: ExplainedMigration | undefined,
  state: MigrationStatus,
): Pick<MigrationFacts, 'progress' | 'message'> {
  const { status, metadata } = object ?? {};
  const aborts = state.abortRequested === true || metadata?.deletionTimestamp !== undefined;
  const hasFailed = status?.phase === 'Failed' || (object === undefined && state.failed === true);
  if (hasFailed && (aborts || state.abortStatus === 'Succeeded')) return { progress: 'cancelled' };
  if (hasFailed) return { progress: 'failed', message: state.failureReason ?? undefined };
  const hasSucceeded = status?.phase === 'Succeeded' || (object === undefined && state.completed === true);
  if (hasSucceeded) return { progress: 'succeeded' };
  if (aborts) return { progress: 'cancelling' };
  if (state.mode === 'PostCopy') return { progress: 'post-copy' };
  if (status?.phase === 'Running' || state.startTimestamp) return { progress: 'copying' };
  const quota = findCondition(status?.conditions, 'migrationRejectedByResourceQuota');
  return { progress: 'pending', message: quota && (quota.message ?? 'the quota of the namespace is used up') };
}

/** @param now milliseconds since 1970 */
export function rejectionFacts(rejections: readonly Occurrence[], now: number): RejectionFacts | undefined {
  const last = rejections.find(isVerified);
  if (last === undefined || now - timeOf(last) > REJECTION_SECONDS * 1000) return undefined;
  return { node: last.source?.host ?? undefined, reason: last.reason ?? '', message: last.message ?? '' };
}

interface PodReports extends Pick<NodeTopologyStatus, 'pinning' | 'refusals' | 'conditions' | 'interference'> {
  readonly assignments: readonly { readonly podUID: string; readonly cpus: string }[];
}

type PodIds = Pick<ExplainedPod['metadata'], 'uid' | 'namespace' | 'name'>;

/** @param silent whether the Lease of its agent has expired */
export function nodeFacts(
  pod: PodIds,
  dpu: DpuFacts,
  reported: { readonly host: PlacementHost | undefined; readonly status: PodReports } | undefined,
  silent: boolean,
): NodeStateFacts {
  const { assignments = [], pinning = [], refusals = [], interference = [], conditions } = reported?.status ?? {};
  const { uid } = pod;
  return {
    ...dpu,
    silent,
    host: reported?.host,
    assigned: assignments.filter(({ podUID }) => podUID === uid).map(({ cpus }) => cpus),
    pinning: pinning.find(({ podUID }) => podUID === uid),
    networkMapFault: networkMapFault({ conditions }),
    refusedStart: startRefusal(pod, refusals),
    interferencePercent: interference.find(({ podUID }) => podUID === uid)?.percent,
  };
}

export function startRefusal({ uid, namespace, name }: PodIds, refusals: readonly RefusedStart[]): string | undefined {
  const isOf = ({ podUID, ...refusal }: RefusedStart) =>
    podUID === undefined ? refusal.namespace === namespace && refusal.podName === name : podUID === uid;
  return refusals.find(isOf)?.message;
}

/** The facts from Events that only their author can write. @param events newest first */
export function eventFacts(events: readonly Occurrence[], uid: string | undefined): VmFacts['events'] {
  const latest = (component: string, name: string) =>
    events.find(({ source, reason }) => source?.component === component && reason === name);
  const messageForPod = (name: string) => {
    const event = latest(SERVICE, name);
    return event?.involvedObject.uid === uid ? (event?.message ?? undefined) : undefined;
  };
  return {
    sandbox: latest('kubelet', SANDBOX_FAILURE)?.message ?? undefined,
    evicted: latest(SERVICE, 'EvictedBeforeStart')?.message ?? undefined,
    cannotEvict: messageForPod('CannotEvict'),
    cannotStart: messageForPod('FailedToStart'),
  };
}

/** Whether only its author can write such an Event (policy plumbline-events); others may be written by any user. */
export function isVerified({ source, reason }: Occurrence): boolean {
  const { component } = source ?? {};
  if (component === 'kubelet') return [...REJECTIONS, SANDBOX_FAILURE].includes(reason ?? '');
  return component === SERVICE || component === AGENT;
}

/** The API server cuts the prefix of generated names to this length and adds five characters. */
const MAX_PREFIX_CHARACTERS = 58;

/** Whether a pod with that name looks like the launcher of some VM. */
export const isLauncherName = (pod: string): boolean => /^virt-launcher-.+-[a-z0-9]{5}$/.test(pod);

/** Whether a pod with that name is a launcher of the VM: KubeVirt names them `virt-launcher-<VM>-` with a suffix. */
export function isLauncherOf(vm: string, pod: string): boolean {
  const prefix = `virt-launcher-${vm}-`.slice(0, MAX_PREFIX_CHARACTERS);
  return pod.startsWith(prefix) && /^[a-z0-9]{5}$/.test(pod.slice(prefix.length));
}
