import { createHash } from 'node:crypto';
import { CpuSet, unionOf } from '../../model/cpu-set.ts';
import { byText } from '../../model/lists.ts';
import type { Checkpoint, CheckpointEntry, Reading } from './checkpoint.ts';
import type { ClaimName, CpuClaim } from './cpu-claims.ts';
import type { DeviceResource } from './devices.ts';
import { joinNames, type ListedContainer, type PodName } from './listed-containers.ts';
import type { MemoryReading } from './memory-checkpoint.ts';

export interface PodResourcesAnswer {
  /** CPUs that the kubelet may give exclusively; empty under policy none and until the CPU manager has started. */
  readonly allocatable: CpuSet;
  readonly listed: readonly ListedContainer[];
  readonly claimNames: ReadonlyMap<string, ClaimName>;
  /** Undefined if the kubelet's file about devices in use cannot be read. */
  readonly devices: readonly DeviceResource[] | undefined;
  readonly memory: MemoryReading;
}

export interface Inputs {
  readonly online: CpuSet;
  readonly checkpoint: Reading<Checkpoint>;
  readonly podResources: Reading<PodResourcesAnswer>;
  readonly claims: Reading<readonly CpuClaim[]>;
  /** Whether the kubelet answered after the checkpoint was read: only then a checkpoint may free CPUs. */
  readonly confirmed: boolean;
  /** Whether the checkpoint has been unusable for so long that PodResources alone decides what is free. */
  readonly alone: boolean;
  /** The CPU manager policy of the kubelet's configuration, for a kubelet without a checkpoint; undefined if unknown. */
  readonly configuredPolicy: string | undefined;
}

/** A container with exclusive CPUs, or a pod that has them as a whole (container ''). */
export interface CpuOwner extends CheckpointEntry {
  /** Undefined until PodResources has named the pod. */
  readonly name: PodName | undefined;
}

/**
 * Who owns which CPUs: the only place that says so. The report, the agent's Lease, the gate, the device plugin, the
 * threads of Open vSwitch and the pinning of VMs read it. Owner: the kubelet, and dra-driver-cpu for claims. Age: the
 * last change of a source. End: each value is replaced as a whole by the next view.
 */
export interface AssignmentsView {
  /** The kubelet's CPU manager policy; undefined until it is known. */
  readonly policy: string | undefined;
  /** Online CPUs that the kubelet never gives exclusively; undefined until it has answered. */
  readonly reserved: CpuSet | undefined;
  /** Every container that a source names as owner, ascending by pod uid and container. */
  readonly assignments: readonly CpuOwner[];
  /** ResourceClaims with CPUs, ascending by uid. */
  readonly claims: readonly (CpuClaim & { readonly name: ClaimName | undefined })[];
  /** All CPUs of `assignments` and `claims`. */
  readonly owned: CpuSet;
  /** Without an owner. Grows only when all sources agree and are current, or without a checkpoint for long. */
  readonly free: CpuSet | undefined;
  /** The kubelet's shared pool in its checkpoint; undefined without a checkpoint. */
  readonly pool: CpuSet | undefined;
  /** The pool and all CPUs of containers in the checkpoint; undefined without one, and under policy none. */
  readonly cpusOfCheckpoint: CpuSet | undefined;
  /** CPUs that the kubelet may give exclusively; undefined until it has answered. */
  readonly allocatable: CpuSet | undefined;
  /** What keeps `free` from growing; empty when nothing does. */
  readonly holds: readonly string[];
  /** Whether every source has answered since the last change, so that the view is what the kubelet has. */
  readonly isComplete: boolean;
  readonly sources: { readonly [Source in 'checkpoint' | 'podResources' | 'claims']: string | undefined };
  /** What keeps the view from being current, one text for each source; empty when it is current. */
  readonly problems: readonly string[];
  readonly names: ReadonlyMap<string, PodName>;
  /** Whether the answer of the kubelet is older than the checkpoint, and the next one is on its way. */
  readonly isAnswerPending: boolean;
  /** The devices of each resource, and the state of the memory manager; undefined until the kubelet has answered. */
  readonly devices: readonly DeviceResource[] | undefined;
  readonly memory: MemoryReading | undefined;
}

/** The CPUs that a pod's containers own; empty for an unknown pod. */
export function cpusOfPod({ assignments }: Pick<AssignmentsView, 'assignments'>, uid: string): CpuSet {
  return unionOf(assignments.flatMap(({ podUID, cpus }) => (podUID === uid ? [cpus] : [])));
}

export const UNKNOWN_VIEW: AssignmentsView = {
  policy: undefined,
  reserved: undefined,
  assignments: [],
  claims: [],
  owned: CpuSet.EMPTY,
  free: undefined,
  pool: undefined,
  cpusOfCheckpoint: undefined,
  allocatable: undefined,
  holds: ['no assignments were read yet'],
  isComplete: false,
  sources: { checkpoint: 'not read yet', podResources: 'not queried yet', claims: undefined },
  problems: ['no assignments were read yet'],
  names: new Map(),
  isAnswerPending: false,
  devices: undefined,
  memory: undefined,
};

const problemOf = ({ problem }: Reading<unknown>): string[] => (problem === undefined ? [] : [problem]);

export function nextView(
  previous: AssignmentsView,
  { online, checkpoint, podResources, claims, confirmed, alone, configuredPolicy }: Inputs,
): AssignmentsView {
  const state = alone ? undefined : checkpoint.value;
  const policy = state?.policy ?? (alone ? configuredPolicy : undefined) ?? previous.policy;
  const answer = podResources.value;
  const ofKubelet = problemsOf(podResources, policy, alone);
  const others = [...ofKubelet, ...problemOf(claims)];
  const problems = [...problemOf(checkpoint), ...others];
  const holds = alone ? others : problems;

  const reserved = reservedCpus(previous, online, policy, answer);
  const entries = state?.entries ?? [];
  const listed = answer?.listed ?? [];
  const claimed = (claims.value ?? []).map((claim) => ({ ...claim, name: answer?.claimNames.get(claim.uid) }));
  // An answer older than the checkpoint may name the previous pod with these CPUs, and a name is permanent.
  const isAnswered = confirmed && podResources.problem === undefined;
  const names = joinNames(entries, isAnswered ? listed : [], previous.names);
  const owners = ownersOf(entries, names, listed, previous.assignments);
  const owned = unionOf([...owners, ...claimed].map(({ cpus }) => cpus));
  const ofPolicy = policy === 'none' ? undefined : state;
  const pool = ofPolicy?.defaultCpus.union(reserved ?? CpuSet.EMPTY);
  const unowned = (pool?.intersect(online) ?? online).minus(owned);
  const isComplete = confirmed && holds.length === 0 && (alone || state !== undefined) && answer !== undefined;
  return {
    policy,
    reserved,
    isAnswerPending: !confirmed && podResources.problem === undefined,
    ...devicesAndMemory(previous, state, podResources, confirmed),
    assignments: owners,
    claims: claimed,
    owned,
    free: isComplete ? unowned : previous.free?.intersect(unowned),
    pool: state?.defaultCpus,
    cpusOfCheckpoint: ofPolicy?.defaultCpus.union(ofPolicy.owned),
    allocatable: answer?.allocatable ?? previous.allocatable,
    holds,
    isComplete,
    sources: {
      checkpoint: checkpoint.problem,
      podResources: ofKubelet.join('; ') || undefined,
      claims: claims.problem,
    },
    problems,
    names,
  };
}

const ownerKey = ({ podUID, container }: CpuOwner) => `${podUID}\0${container}`;

/**
 * The containers of the checkpoint, and those that only PodResources lists: while the checkpoint is unusable, or older
 * than the answer. These keep the uid under which the checkpoint had them.
 */
function ownersOf(
  entries: readonly CheckpointEntry[],
  names: ReadonlyMap<string, PodName>,
  listed: readonly ListedContainer[],
  previous: readonly CpuOwner[],
): readonly CpuOwner[] {
  const owners: CpuOwner[] = entries.map((entry) => ({ ...entry, name: names.get(entry.podUID) }));
  const inCheckpoint = unionOf(entries.map(({ cpus }) => cpus));
  for (const { namespace, podName, container, cpus: all } of listed) {
    const cpus = all.minus(inCheckpoint);
    if (cpus.isEmpty) continue;
    const before = previous.find(({ name, ...owner }) => {
      const isSame = name?.podName === podName && name.namespace === namespace && owner.container === container;
      return isSame && owner.cpus.intersects(all);
    });
    const podUID = before?.podUID ?? unknownUid(namespace, podName);
    owners.push({ podUID, container, cpus, name: { namespace, podName } });
  }
  return owners.length === entries.length ? owners : owners.sort(byText(ownerKey));
}

/** PodResources has no uids. The same pod gets the same text as long as the checkpoint does not name it. */
function unknownUid(namespace: string, podName: string): string {
  return `unknown-${createHash('sha256').update(`${namespace}/${podName}`).digest('hex').slice(0, 16)}`;
}

/** Not known while the kubelet is silent, or lists no pods after its start: everything would look free. */
function devicesAndMemory(
  previous: AssignmentsView,
  state: Checkpoint | undefined,
  { value: answer, problem }: Inputs['podResources'],
  confirmed: boolean,
): Pick<AssignmentsView, 'devices' | 'memory'> {
  const isStarting = answer?.listed.length === 0 && state?.owned.isEmpty === false;
  const isOutdated = problem !== undefined && !confirmed;
  if (isStarting || isOutdated) return { devices: undefined, memory: undefined };
  const { devices, memory } = answer ?? previous;
  return { devices, memory };
}

/** A started kubelet names allocatable CPUs, but not under policy none, nor before its policy is known. */
function problemsOf(
  { value, problem }: Reading<PodResourcesAnswer>,
  policy: string | undefined,
  alone: boolean,
): string[] {
  if (problem !== undefined) return [problem];
  const givesCpus = policy === undefined ? alone : policy !== 'none';
  if (!givesCpus || value?.allocatable.isEmpty !== true) return [];
  return ['the kubelet names no allocatable CPUs: its CPU manager has not started'];
}

/** Under policy none the answer shows no reserved CPUs. Under another policy an empty answer is not usable. */
function reservedCpus(
  previous: AssignmentsView,
  online: CpuSet,
  policy: string | undefined,
  answer: PodResourcesAnswer | undefined,
): CpuSet | undefined {
  if (answer === undefined) return previous.reserved;
  if (policy === 'none') return CpuSet.EMPTY;
  return answer.allocatable.isEmpty ? previous.reserved : online.minus(answer.allocatable);
}
