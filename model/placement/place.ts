import { countText, cpuListText } from '../amounts.ts';
import { type CpuSet, unionOf } from '../cpu-set.ts';
import { isWholeCores } from '../host.ts';
import type { Admission, ContainerPlacement } from '../kubelet/admission.ts';
import type { Kubelet, Unpredictable } from '../kubelet/kubelet.ts';
import { cpusOf, type KubeletState } from '../kubelet/state.ts';
import { pagesText, stateText, takenPagesText } from '../kubelet/usage.ts';
import { bytesText } from '../quantity.ts';
import { fitsInEveryOrder } from './every-order.ts';
import {
  alignsOrRefuses,
  isPredicted,
  keepsWholeCores,
  needsKey,
  type PlacementHost,
  type PlacementNeeds,
  type PodInFlight,
  type PredictedHost,
  unpredictableFor,
  withoutPods,
} from './needs.ts';
import { cellsTouched, networkVerdict } from './networks.ts';
import { givesTwice, type Refusal, refusal } from './refusal.ts';
import { refusedByKubelet } from './refused-by-kubelet.ts';
import { scoreOf } from './score.ts';

interface Placement {
  readonly fits: true;
  /** If it admits the pods in flight first. */
  readonly containers: readonly ContainerPlacement[];
  readonly cells: readonly number[];
  /** 0 to 1, higher is better. */
  readonly score: number;
  /** For example about a physnet that this node does not have. */
  readonly warnings: readonly string[];
}

/**
 * Whether the kubelet would admit the pod, with which CPUs, and near its networks; for a node that `unfitShape` does
 * not refuse. The pod must fit in whatever order the kubelet admits it and the promised pods in flight, with and without
 * the others in flight. Without room for the promised ones by the report alone, the report is behind the kubelet, and the
 * pod is refused. The others never are a reason for that: any tenant can create them.
 * @param assumed pods in flight on the node, which its report does not contain yet, oldest first
 */
export function placeOnFit(
  needs: PlacementNeeds,
  node: PlacementHost,
  assumed: readonly PodInFlight[],
): Placement | Refusal | Unpredictable {
  const unpredictable = unpredictableFor(needs, node);
  if (unpredictable !== undefined || !isPredicted(node)) return { unpredictable: unpredictable ?? 'no state' };
  const { assignments } = node.state;
  const inFlight = assumed.filter(({ request }) => !assignments.has(request.uid) && request.uid !== needs.request.uid);
  const promised = inFlight.filter((pod) => pod.promised !== false);
  const others = inFlight.filter((pod) => pod.promised === false);
  const missing = missingPagesOfNode(node.state, [...promised, needs]);
  if (missing !== undefined) return missing;
  const afterOthers = admitAll(node, others).after;
  const before = admitAll(afterOthers, promised);
  const verdict = predictAdmission(needs, before.after);
  if ('kind' in verdict) return verdict;
  const isBehind = before.refused && (others.length === 0 || admitAll(node, promised).refused);
  const fitsAlways =
    !isBehind &&
    anyOrder(needs, afterOthers, before.admitted) &&
    (others.length === 0 || anyOrder(needs, node, promised));
  if (!fitsAlways) {
    const pods = countText(promised.length, 'pod');
    const text = isBehind
      ? `${pods} in flight ${promised.length === 1 ? 'does' : 'do'} not fit by the report of the node: the report is outdated, or the kubelet will refuse them`
      : `it fits only if the kubelet admits it before some of ${pods} in flight`;
    return refusal('in-flight', text);
  }
  const cpus = exclusiveCpus(verdict.admission.containers);
  return {
    fits: true,
    containers: verdict.admission.containers,
    cells: cellsTouched(node.host, cpus),
    score: scoreOf(needs, before.after, cpus),
    warnings: verdict.warnings,
  };
}

/** Of the containers that keep running: later containers reuse those of init containers. */
export function exclusiveCpus(containers: readonly ContainerPlacement[]): CpuSet {
  return unionOf(containers.filter(({ kind }) => kind !== 'init').map(({ cpus }) => cpus));
}

interface PredictedAdmission {
  readonly admission: Extract<Admission, { admitted: true }>;
  readonly warnings: readonly string[];
}

/** Predicts the admission of a pod and compares the result with its promises. */
function predictAdmission(needs: PlacementNeeds, node: PredictedHost): PredictedAdmission | Refusal {
  const { kubelet, state } = node;
  const admission = kubelet.admit(state, needs.request);
  if (!admission.admitted) return refusedByKubelet(needs, node, admission);
  const lasting = admission.containers.filter(({ kind, cpus }) => kind !== 'init' && !cpus.isEmpty);
  const foreign = exclusiveCpus(lasting).intersect(node.reserved.union(cpusOf(state.assignments)));
  if (!foreign.isEmpty) return givesTwice(node, foreign);
  const polled = exclusiveCpus(lasting).intersect(node.polled);
  if (!polled.isEmpty) {
    const text = `the kubelet would give ${cpuListText(polled)}, on which the virtual switch polls; reserve them (reservedSystemCPUs)`;
    return refusal('polled-cpus', text);
  }
  const broken = keepsWholeCores(needs, node) ? lasting.find(({ cpus }) => !isWholeCores(node.host, cpus)) : undefined;
  if (broken) {
    const text = `container ${broken.name} needs whole cores, but the kubelet would give it ${cpuListText(broken.cpus)}`;
    return refusal('too-few-whole-cores', text);
  }
  const missing = missingPages(kubelet, state, admission.state);
  if (missing) return missing;
  const networks = networkVerdict(needs, node, exclusiveCpus(lasting));
  return 'kind' in networks ? networks : { admission, warnings: networks.warnings };
}

function admitAll(node: PredictedHost, pods: readonly PlacementNeeds[]) {
  let { state } = node;
  const admitted: PlacementNeeds[] = [];
  for (const pod of pods) {
    const admission = node.kubelet.admit(state, pod.request);
    if (!admission.admitted) continue;
    state = admission.state;
    admitted.push(pod);
  }
  return { after: { ...node, state }, admitted, refused: admitted.length < pods.length };
}

/** Whether the node's kubelet would refuse the pod even if nothing else ran there. */
export function isRefusedAnyway({ request }: PlacementNeeds, node: PlacementHost): boolean {
  if (!isPredicted(node)) return false;
  return !node.kubelet.admit(node.kubelet.initialState(node.state.pools), request).admitted;
}

/** May be false if pods share a resource of which the kubelet chooses devices at random. */
function anyOrder(needs: PlacementNeeds, node: PredictedHost, inFlight: readonly PlacementNeeds[]): boolean {
  if (inFlight.length === 0) return true;
  const items = [...inFlight, needs];
  const users = (resource: string) =>
    items.filter(({ request }) => request.containers.some(({ devices }) => devices.has(resource)));
  const admit = (pod: PlacementNeeds, state: KubeletState) => {
    const verdict = predictAdmission(pod, { ...node, state });
    if ('kind' in verdict) return undefined;
    const { arbitrary } = verdict.admission;
    const isShared = alignsOrRefuses(node) && [...arbitrary].some((resource) => users(resource).length > 1);
    return isShared ? undefined : verdict.admission.state;
  };
  return fitsInEveryOrder({ items, keyOf: needsKey, start: node.state, admit, textOf: stateText });
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Pods in flight that the kubelet would now refuse or place badly in the order of their binding. All fitted when their
 * room was reserved; but if the kubelet aligns, a pod that ends can change the place of one in flight. Other orders do
 * not justify an eviction.
 * @param gone pods in the report that have ended. A place counts as lost only if it is lost with and without them.
 */
export function lostPlaces(
  node: PlacementHost,
  pods: readonly PlacementNeeds[],
  gone: ReadonlySet<string>,
): ReadonlySet<string> {
  if (!alignsOrRefuses(node)) return NONE;
  const refusedPods = refusedInOrder(node, pods);
  if (refusedPods.size === 0 || gone.size === 0) return refusedPods;
  const refusedWithoutGone = refusedInOrder(withoutPods(node, gone), pods);
  return new Set([...refusedPods].filter((uid) => refusedWithoutGone.has(uid)));
}

/** On the largest hosts each prediction takes milliseconds. Further ones follow when the report has the first. */
const MAX_PREDICTED_PODS = 8;
/** The same for a host with more than FEW NUMA nodes, because a prediction tries their combinations. */
const MAX_PREDICTED_PODS_OF_MANY_CELLS = 2;
const MAX_CELLS_OF_MANY_PREDICTIONS = 4;

function refusedInOrder(node: PlacementHost, pods: readonly PlacementNeeds[]): ReadonlySet<string> {
  if (!isPredicted(node)) return NONE;
  const refused = new Set<string>();
  const most =
    node.host.cells.length > MAX_CELLS_OF_MANY_PREDICTIONS ? MAX_PREDICTED_PODS_OF_MANY_CELLS : MAX_PREDICTED_PODS;
  let { state } = node;
  for (const pod of pods.slice(0, most)) {
    if (node.state.assignments.has(pod.request.uid) || unpredictableFor(pod, node) !== undefined) continue;
    const verdict = predictAdmission(pod, { ...node, state });
    if ('kind' in verdict) refused.add(pod.request.uid);
    else state = verdict.admission.state;
  }
  return refused;
}

/**
 * The static memory manager counts what containers have reserved, and the kernel what is used. A process that took pages
 * without a reservation leaves the pod without some that the kubelet promises it.
 * @param before the state in which the kubelet admits the pod, and after it
 */
function missingPages({ topology }: Kubelet, before: KubeletState, after: KubeletState): Refusal | undefined {
  const texts: string[] = [];
  for (const [bit, { unaccounted = new Map(), tables }] of (after.memory?.cells ?? []).entries()) {
    for (const [type, bytes] of unaccounted) {
      const left = tables.get(type)?.free ?? 0;
      const isUsed = left < (before.memory?.cells[bit]?.tables.get(type)?.free ?? 0);
      if (isUsed && left < bytes) texts.push(`${pagesText(type, bytes)} on NUMA node ${topology.numaIds[bit]}`);
    }
  }
  return texts.length === 0 ? undefined : refusal('pages-taken', takenPagesText(texts));
}

/** The same for a node whose kubelet counts no pages: what the pods need together must be free by the kernel. */
function missingPagesOfNode(
  { freePages }: KubeletState,
  pods: readonly Pick<PlacementNeeds, 'request'>[],
): Refusal | undefined {
  for (const [type, free] of freePages ?? []) {
    const containers = pods.flatMap(({ request }) => request.containers.filter(({ kind }) => kind !== 'init'));
    const needed = containers.reduce((sum, { memory }) => sum + (memory.get(type) ?? 0), 0);
    if (needed <= free) continue;
    const text = `${pagesText(type, free)} are free by the kernel, and ${bytesText(needed)} are needed`;
    return refusal('pages-taken', text);
  }
  return undefined;
}
