import { unionOf } from '../../model/cpu-set.ts';
import { REJECTIONS } from '../../model/kubelet/provider.ts';
import { assignedCpus, isReportedResource } from '../../model/kubelet/report.ts';
import { PREDICTION_DIFFERS } from '../../model/names.ts';
import { type PlacementHost, unpredictableFor, withAssignments, withPod } from '../../model/placement/needs.ts';
import type { PredictionBasis, Reservation, ReservationEnd } from '../../model/reservations/reservation.ts';
import { VERSION } from '../../runtime/config.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import type { ClusterNode } from '../cluster/fleet.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { ExtenderContext } from '../telemetry/context.ts';

interface PredictionCheckOptions extends Pick<ExtenderContext, 'events' | 'log'> {
  readonly state: Pick<ClusterState, 'fleet' | 'reservations' | 'lostPlaces'>;
  readonly cluster: Pick<Cluster, 'pods'>;
  readonly metrics: Pick<ExtenderContext['metrics'], 'predictions'>;
}

/** Until a report has the devices and memory at the pod's admission, or a rejection, which the agent polls. */
const ADMISSION_SECONDS = 5;
const REJECTION_SECONDS = 35;
/** Characters of a record as JSON: a log line has room for little more. */
const MAX_RECORD_CHARACTERS = 14_000;

type Comparison = NonNullable<ReturnType<typeof comparisonOf>>;

/** With the first report that contains the pod, or the kubelet's rejection, if nothing else has changed on the node. */
export function createPredictionCheck(options: PredictionCheckOptions) {
  const { events, metrics, log } = options;
  const count = (result: string) => metrics.predictions.inc({ result });

  const announce = ({ reservation, node: { name: node }, basis, predicted, actual, isRejection }: Comparison) => {
    const { uid, namespace, name = '', pod } = reservation;
    count(isRejection ? 'rejected' : 'other_cpus');
    const replay = {
      version: VERSION,
      node,
      report: JSON.parse(basis.shape.key) as unknown,
      assigned: basis.assignments.map(({ cpus }) => cpus),
      usage: JSON.parse(basis.usage || '[[],[]]') as unknown,
      containers: pod.request.containers,
      predicted,
      actual,
    };
    const text = JSON.stringify(replay, (_, value) => (value instanceof Map ? [...value] : value));
    const isShort = text.length <= MAX_RECORD_CHARACTERS;
    const change = isRejection ? `rejected the pod: ${actual}` : `assigned CPUs ${actual}`;
    const message = `CPUs ${predicted} of ${node} were predicted, but the kubelet ${change}`;
    const target = { apiVersion: 'v1', kind: 'Pod', name, namespace, uid };
    const fields = { node, pod: `${namespace}/${name}`, predicted, actual, event: PREDICTION_DIFFERS, message };
    log.warn({ ...fields, ...(isShort && { replay: JSON.parse(text) }) }, 'the kubelet did not do as predicted');
    events.record(target, { type: 'Warning', reason: PREDICTION_DIFFERS, message });
  };

  /** Announces a difference, unless other pods had devices or memory that the report did not contain. */
  const confirm = (comparison: Comparison) => {
    const { reservation, node, basis, isRejection } = comparison;
    const before = withAssignments(basis.shape.empty, basis.assignments, basis.usage);
    const expected = isRejection ? before : withPod(before, reservation.pod.request);
    const after = withAssignments(basis.shape.empty, [], node.usage);
    const isComparable = isUnchanged(node, basis, reservation.uid) && amountsInUse(after) === amountsInUse(expected);
    if (isComparable) announce(comparison);
    else count('not_compared');
  };

  /** Called when a reservation has ended, after the report that ended it has been stored. */
  return (reservation: Reservation<PodNeeds>, end: ReservationEnd): void => {
    const isDecided = end === 'shown' || end === 'terminal' || (end === 'deleted' && reservation.kind === 'bound');
    // A reservation without a namespace is not from a filter call.
    if (!isDecided || reservation.namespace === undefined) return;
    const comparison = comparisonOf(options, reservation, end === 'terminal');
    if (comparison === undefined) count('not_compared');
    else if (comparison.actual === comparison.predicted) count('as_predicted');
    else if (!dependsOnResources(comparison)) announce(comparison);
    else {
      const seconds = comparison.isRejection ? REJECTION_SECONDS : ADMISSION_SECONDS;
      setTimeout(confirm, seconds * 1000, comparison).unref();
    }
  };
}

/** Undefined if there is nothing to compare, or another pod may be the reason of a difference. */
function comparisonOf(
  { state, cluster }: Pick<PredictionCheckOptions, 'state' | 'cluster'>,
  reservation: Reservation<PodNeeds>,
  isRejection: boolean,
) {
  const { uid, namespace, name, kind, places } = reservation;
  const pod = isRejection ? cluster.pods.get(`${namespace}/${name}`) : undefined;
  const [boundTo = ''] = kind === 'bound' ? places.keys() : [];
  const node = state.fleet.get(pod?.node ?? boundTo);
  const { basis, cpus } = places.get(node?.name ?? '') ?? {};
  if (node === undefined || basis === undefined || cpus === undefined) return undefined;
  const actual = isRejection ? REJECTIONS.find((reason) => reason === pod?.rejected) : assignedTo(node, reservation);
  const isInFlight = state.reservations.assumedOn(node.name, uid).some((other) => other.kind === 'bound');
  if (actual === undefined || isInFlight || !isUnchanged(node, basis, uid)) return undefined;
  if (state.lostPlaces.goneFrom(node).size > 0) return undefined;
  return { reservation, node, basis, predicted: `${cpus}`, actual, isRejection };
}

/** Undefined if a container is missing. */
function assignedTo({ assignments }: ClusterNode, { uid, pod }: Reservation<PodNeeds>): string | undefined {
  const names = pod.request.containers.filter(({ kind, cpus }) => kind !== 'init' && cpus > 0).map(({ name }) => name);
  const podAssignments = assignments.filter(({ podUID, container }) => podUID === uid && names.includes(container));
  return podAssignments.length === names.length ? `${unionOf(assignedCpus(podAssignments))}` : undefined;
}

function isUnchanged({ shape, assignments }: ClusterNode, basis: PredictionBasis, uid: string): boolean {
  const othersIn = (owners: PredictionBasis['assignments']) =>
    JSON.stringify(owners.filter(({ podUID }) => podUID !== uid));
  return shape?.key === basis.shape.key && othersIn(assignments) === othersIn(basis.assignments);
}

/** Whether devices or memory, which other pods may take without CPUs of their own, can affect the prediction. */
function dependsOnResources({ reservation, basis }: Comparison): boolean {
  const notReported = { memory: true, unhealthy: new Set<string>() };
  return unpredictableFor(reservation.pod, { ...basis.shape.empty, devices: undefined, notReported }) !== undefined;
}

/** Of all pods and on all NUMA nodes. */
function amountsInUse({ state }: PlacementHost): string {
  const amounts = new Map<string, number>();
  const add = (name: string, amount: number) => amounts.set(name, (amounts.get(name) ?? 0) + amount);
  const ofContainers = [...(state?.devices.values() ?? [])].flatMap((containers) => [...containers.values()]);
  for (const resources of ofContainers) for (const [name, ids] of resources) add(name, ids.size);
  for (const { tables } of state?.memory?.cells ?? [])
    for (const [type, { allocatable, free }] of tables) add(type, allocatable - free);
  return JSON.stringify([...amounts].filter(([name, amount]) => amount > 0 && isReportedResource(name)).sort());
}
