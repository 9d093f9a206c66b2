import { randomBytes } from 'node:crypto';
import { NO_SHAPE, type Status } from '../data/wire.ts';
import type { Cluster, Listeners } from './cluster.ts';
import { type ShownPod, waits } from './pods.ts';
import { RecordLog } from './record-log.ts';
import {
  nodeEnd,
  nodePicture,
  nodeRecord,
  podEnd,
  podRecord,
  runningEnd,
  runningRecord,
  shapeRecord,
  statusRecord,
} from './records.ts';

/** The content of the page as records to send. */
export interface Feed {
  /** Identifies this log of records: numbers from another epoch have no meaning. */
  readonly epoch: string;
  readonly records: RecordLog;
  /** Whether all records were written once. */
  readonly complete: boolean;
  /** Calls back when there are new records, until the returned function is called. */
  watch(onNews: () => void): () => void;
  readonly viewers: number;
}

export interface FeedOptions {
  readonly cluster: () => Cluster;
  readonly status: () => Status;
}

/** A feed, and the callbacks of the cluster's watches. */
export interface Feeding extends Feed {
  readonly listeners: Listeners;
  /** Writes records of the changes since the last call. */
  look(): void;
}

/** Number of shapes beyond one for each node; above it, all records are written again with a new epoch. */
const SPARE_SHAPES = 1000;

/** Keeps the newest record of each thing. It collects changes, and `look` writes them. */
export function createFeed({ cluster, status }: FeedOptions): Feeding {
  const viewers = new Set<() => void>();
  /**
   * Pods by uid, by the uid in their node's report, and by the node to which they are nominated or bound and where they
   * run.
   */
  const pods = new Map<string, ShownPod>();
  const reported = new Map<string, ShownPod>();
  const coming = new PodsByNode();
  const running = new PodsByNode();
  const dirtyNodes = new Set<string>();
  const dirtyPods = new Set<string>();
  const ids = new Map<string, number>();
  let lastId = 0;
  let shapes = new Map<string, number>();
  let records = new RecordLog();
  let epoch = newEpoch();
  let complete = false;

  const forget = (pod: ShownPod): void => {
    pods.delete(pod.uid);
    reported.delete(pod.kubeletUid);
    dirtyPods.add(pod.uid);
    const node = targetOf(pod);
    if (node === undefined) return;
    coming.delete(node, pod.uid);
    running.delete(node, pod.uid);
    dirtyNodes.add(node);
  };

  const remember = (pod: ShownPod): void => {
    pods.set(pod.uid, pod);
    reported.set(pod.kubeletUid, pod);
    dirtyPods.add(pod.uid);
    const node = targetOf(pod);
    if (node === undefined) return;
    if (pod.pending) coming.put(node, pod);
    else if (pod.running !== undefined) running.put(node, pod);
    // The node's record names its pods.
    dirtyNodes.add(node);
  };

  const shapeNumber = (content: string | undefined): number => {
    if (content === undefined) return NO_SHAPE;
    const known = shapes.get(content);
    if (known !== undefined) return known;
    const number = shapes.size;
    shapes.set(content, number);
    records.put(`s${number}`, shapeRecord(number, content));
    return number;
  };

  const writeNode = (name: string): void => {
    const onTheWay = [...coming.on(name)].sort(byAge);
    const picture = nodePicture(name, cluster(), (uid) => reported.get(uid), onTheWay);
    const id = ids.get(name) ?? ++lastId;
    if (picture === undefined) {
      ids.delete(name);
      records.end(`n${id}`, nodeEnd(id));
    } else {
      ids.set(name, id);
      records.put(`n${id}`, nodeRecord(id, name, shapeNumber(picture.shape), picture));
    }
    // The node's report may say that the agent refused a pod's start.
    for (const { uid } of onTheWay) dirtyPods.add(uid);
    for (const pod of running.on(name)) writeRunning(records, pod, cluster());
  };

  const startOver = (): void => {
    epoch = newEpoch();
    records = new RecordLog();
    shapes = new Map();
    for (const name of ids.keys()) dirtyNodes.add(name);
    for (const uid of pods.keys()) dirtyPods.add(uid);
  };

  return {
    get epoch() {
      return epoch;
    },
    get records() {
      return records;
    },
    get complete() {
      return complete;
    },
    watch(onNews) {
      // Each viewer needs a distinct function, even if two pass the same one.
      const viewer = () => onNews();
      viewers.add(viewer);
      return () => void viewers.delete(viewer);
    },
    get viewers() {
      return viewers.size;
    },
    listeners: {
      node: (name) => void dirtyNodes.add(name),
      pod(before, after) {
        if (before) forget(before);
        if (after) remember(after);
      },
    },
    look() {
      if (shapes.size > ids.size + SPARE_SHAPES) startOver();
      const seen = records.last;
      const wasComplete = complete;
      const now = status();
      for (const name of dirtyNodes) writeNode(name);
      dirtyNodes.clear();
      for (const uid of dirtyPods) writePod(records, uid, pods.get(uid), cluster());
      dirtyPods.clear();
      records.put('c', statusRecord(now));
      complete ||= now.missing === undefined;
      if (records.last === seen && complete === wasComplete) return;
      for (const viewer of viewers) viewer();
    },
  };
}

/** @param pod undefined if it was deleted */
function writePod(records: RecordLog, uid: string, pod: ShownPod | undefined, cluster: Cluster): void {
  const refusal = pod && refusalOf(pod, cluster);
  if (pod && waits(pod, refusal)) records.put(`p${uid}`, podRecord(pod, refusal));
  else records.end(`p${uid}`, podEnd(uid));
  if (pod?.running === undefined) records.end(`r${uid}`, runningEnd(uid));
}

/** Writes details of a running pod that the record of its node does not contain. */
function writeRunning(records: RecordLog, pod: ShownPod, cluster: Cluster): void {
  const record = runningRecord(pod, cluster);
  if (record === undefined) records.end(`r${pod.uid}`, runningEnd(pod.uid));
  else records.put(`r${pod.uid}`, record);
}

const newEpoch = () => randomBytes(6).toString('hex');

/** The node that a pod is on, or is nominated to. */
const targetOf = ({ node, nominated }: ShownPod): string | undefined => node ?? nominated;

const byAge = (a: ShownPod, b: ShownPod): number =>
  Number((a.since ?? '') > (b.since ?? '')) - Number((a.since ?? '') < (b.since ?? '')) || (a.uid < b.uid ? -1 : 1);

/** Why the agent of the pod's node refused its start. */
function refusalOf({ node, uid, namespace, name }: ShownPod, { reports }: Pick<Cluster, 'reports'>) {
  const refusal = reports.get(node ?? '')?.refusals.find((one) => one.podName === name && one.namespace === namespace);
  return refusal === undefined || (refusal.podUID ?? uid) !== uid ? undefined : refusal.message;
}

/** Pods by the node that they are on or in flight to; nodes without pods have no entry. */
export class PodsByNode {
  readonly #nodes = new Map<string, Map<string, ShownPod>>();

  put(node: string, pod: ShownPod): void {
    const there = this.#nodes.get(node) ?? new Map<string, ShownPod>();
    this.#nodes.set(node, there.set(pod.uid, pod));
  }

  delete(node: string, uid: string): void {
    const there = this.#nodes.get(node);
    there?.delete(uid);
    if (there?.size === 0) this.#nodes.delete(node);
  }

  on(node: string): Iterable<ShownPod> {
    return this.#nodes.get(node)?.values() ?? [];
  }
}
