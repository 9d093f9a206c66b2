import type { EventRecorder } from '../../kube/events.ts';
import { unionOf } from '../../model/cpu-set.ts';
import { assignedCpus, isReportedResource } from '../../model/kubelet/report.ts';
import { PREDICTION_DIFFERS } from '../../model/names.ts';
import { type PlacementHost, unpredictableFor, withAssignments, withPod } from '../../model/placement/needs.ts';
import type { PredictionBasis, Reservation, ReservationEnd } from '../../model/reservations/reservation.ts';
import { REJECTIONS } from '../../model/vm-state/rejected.ts';
import type { Logger } from '../../runtime/log.ts';
import { VERSION } from '../../runtime/version.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { ClusterNode } from '../cluster/cluster-node.ts';
import type { ClusterState } from '../cluster/cluster-state.ts';
import type { PodNeeds } from '../cluster/pod-needs.ts';
import type { ExtenderMetrics } from '../telemetry/metrics.ts';

export interface PredictionCheckOptions {
  readonly state: Pick<ClusterState, 'fleet' | 'reservations' | 'lostPlaces'>;
  readonly cluster: Pick<Cluster, 'pods'>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly metrics: Pick<ExtenderMetrics, 'predictions'>;
  readonly log: Logger;
}

/**
 * Seconds until a report has the devices and memory in use at the time of a pod's admission, which the agent reads
 * afterwards, and of a rejection, which it only finds when it polls.
 */
const ADMISSION_SECONDS = 5;
const REJECTION_SECONDS = 35;
/** Characters of a record as JSON: a log line has room for little more. */
const MAX_RECORD_CHARACTERS = 14_000;

interface Comparison {
  readonly reservation: Reservation<PodNeeds>;
  readonly node: string;
  readonly basis: PredictionBasis;
  readonly predicted: string;
  /** CPUs, or the reason of the rejection. */
  readonly actual: string;
  readonly isRejection: boolean;
}

/**
 * Compares what the kubelet does with each pod with the prediction of the filter call: the first report that contains
 * the pod, or the kubelet's rejection, if nothing else has changed on the node since the report of the prediction.
 */
export class PredictionCheck {
  readonly #options: PredictionCheckOptions;

  constructor(options: PredictionCheckOptions) {
    this.#options = options;
  }

  /** Call it when a reservation has ended, after the report that ended it has been stored. */
  ended(reservation: Reservation<PodNeeds>, end: ReservationEnd): void {
    const isDecided = end === 'shown' || end === 'terminal' || (end === 'deleted' && reservation.kind === 'bound');
    // A reservation without a namespace is not from a filter call.
    if (!isDecided || reservation.namespace === undefined) return;
    const comparison = this.#comparisonOf(reservation, end === 'terminal');
    if (comparison === undefined) this.#count('not_compared');
    else if (comparison.actual === comparison.predicted) this.#count('as_predicted');
    else if (!dependsOnResources(comparison)) this.#announce(comparison);
    else {
      const seconds = comparison.isRejection ? REJECTION_SECONDS : ADMISSION_SECONDS;
      setTimeout(() => this.#confirm(comparison), seconds * 1000).unref();
    }
  }

  /** Undefined if there is nothing to compare, or another pod may be the reason of a difference. */
  #comparisonOf(reservation: Reservation<PodNeeds>, isRejection: boolean): Comparison | undefined {
    const { fleet, reservations, lostPlaces } = this.#options.state;
    const { uid, namespace, name, kind, places } = reservation;
    const pod = isRejection ? this.#options.cluster.pods.get(`${namespace}/${name}`) : undefined;
    const [boundTo = ''] = kind === 'bound' ? places.keys() : [];
    const node = fleet.get(pod?.node ?? boundTo);
    if (node === undefined) return undefined;
    const { basis, cpus } = places.get(node.name) ?? {};
    const actual = isRejection ? REJECTIONS.find((reason) => reason === pod?.rejected) : assignedTo(node, reservation);
    if (basis === undefined || cpus === undefined || actual === undefined) return undefined;
    const isInFlight = reservations.assumedOn(node.name, uid).some((other) => other.kind === 'bound');
    if (isInFlight || lostPlaces.goneFrom(node).size > 0 || !isUnchanged(node, basis, uid)) return undefined;
    return { reservation, node: node.name, basis, predicted: `${cpus}`, actual, isRejection };
  }

  /** Announces a difference, unless other pods had devices or memory that the report did not contain. */
  #confirm(comparison: Comparison): void {
    const { reservation, basis, isRejection } = comparison;
    const node = this.#options.state.fleet.get(comparison.node);
    const before = withAssignments(basis.shape.empty, basis.assignments, basis.usage);
    const expected = isRejection ? before : withPod(before, reservation.pod.request);
    const isConfirmed =
      node !== undefined &&
      isUnchanged(node, basis, reservation.uid) &&
      amountsInUse(withAssignments(basis.shape.empty, [], node.usage)) === amountsInUse(expected);
    if (isConfirmed) this.#announce(comparison);
    else this.#count('not_compared');
  }

  #announce({ reservation, node, basis, predicted, actual, isRejection }: Comparison): void {
    const { uid, namespace, name = '', pod } = reservation;
    this.#count(isRejection ? 'rejected' : 'other_cpus');
    const replay = {
      version: VERSION,
      node,
      report: JSON.parse(basis.shape.key) as unknown,
      assigned: basis.assignments.map(({ cpus }) => cpus),
      usage: JSON.parse(basis.usage || '[[],[]]') as unknown,
      containers: pod.request.containers.map((container) => ({
        ...container,
        devices: [...container.devices],
        memory: [...container.memory],
      })),
      predicted,
      actual,
    };
    const isShort = JSON.stringify(replay).length <= MAX_RECORD_CHARACTERS;
    this.#options.log.warn(
      { node, pod: `${namespace}/${name}`, predicted, actual, ...(isShort && { replay }) },
      'the kubelet did not do as predicted; plumbline simulate --replay repeats the prediction',
    );
    const change = isRejection ? `rejected the pod: ${actual}` : `assigned CPUs ${actual}`;
    const message = `CPUs ${predicted} of ${node} were predicted, but the kubelet ${change}`;
    this.#options.events.record(
      { apiVersion: 'v1', kind: 'Pod', name, namespace, uid },
      { type: 'Warning', reason: PREDICTION_DIFFERS, message },
    );
  }

  #count(result: 'as_predicted' | 'other_cpus' | 'rejected' | 'not_compared'): void {
    this.#options.metrics.predictions.inc({ result });
  }
}

/** The exclusive CPUs that the pod keeps, as reported; undefined if a container is missing. */
function assignedTo({ assignments }: ClusterNode, { uid, pod }: Reservation<PodNeeds>): string | undefined {
  const names = pod.request.containers.filter(({ kind, cpus }) => kind !== 'init' && cpus > 0).map(({ name }) => name);
  const own = assignments.filter(({ podUID, container }) => podUID === uid && names.includes(container));
  return own.length === names.length ? `${unionOf(assignedCpus(own))}` : undefined;
}

/** Whether hardware, configuration and the CPUs of other pods are those of the prediction. */
function isUnchanged({ shape, assignments }: ClusterNode, basis: PredictionBasis, uid: string): boolean {
  const othersIn = (owners: PredictionBasis['assignments']) =>
    JSON.stringify(owners.filter(({ podUID }) => podUID !== uid));
  return shape?.key === basis.shape.key && othersIn(assignments) === othersIn(basis.assignments);
}

/** Whether devices or memory, which other pods may take without CPUs of their own, can affect the prediction. */
function dependsOnResources({ reservation, basis }: Comparison): boolean {
  const notReported = { devices: true, memory: true, unhealthy: new Set<string>() };
  return unpredictableFor(reservation.pod, { ...basis.shape.empty, notReported }) !== undefined;
}

/** Devices by resource and bytes by type, of all pods and on all NUMA nodes. */
function amountsInUse({ state }: PlacementHost): string {
  const amounts = new Map<string, number>();
  const add = (name: string, amount: number) => amounts.set(name, (amounts.get(name) ?? 0) + amount);
  const ofContainers = [...(state?.devices.values() ?? [])].flatMap((containers) => [...containers.values()]);
  for (const resources of ofContainers) for (const [name, ids] of resources) add(name, ids.size);
  for (const { tables } of state?.memory?.cells ?? [])
    for (const [type, { allocatable, free }] of tables) add(type, allocatable - free);
  return JSON.stringify([...amounts].filter(([name, amount]) => amount > 0 && isReportedResource(name)).sort());
}
