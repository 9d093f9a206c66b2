import { randomBytes } from 'node:crypto';
import type { ClusterState } from '../cluster/cluster-state.ts';
import type { DpuHealth } from '../cluster/dpu-health.ts';
import type { NodeShape } from '../cluster/node-shapes.ts';
import type { PodView } from '../cluster/pod-view.ts';
import type { Decision, Decisions } from '../filter/decisions.ts';
import { RecordLog } from './record-log.ts';
import {
  NO_SHAPE,
  nodeEnd,
  nodeRecord,
  podEnd,
  podRecord,
  type ReplicaStatus,
  replicaRecord,
  shapeContent,
  shapeRecord,
  waits,
} from './records.ts';

/** What the cluster's watches know of pods. */
export interface PodSource {
  readonly pods: ReadonlyMap<string, PodView | undefined>;
  /** Told of every change from now on; undefined: no more. */
  onPod(listener: ((before: PodView | undefined, after: PodView | undefined) => void) | undefined): void;
}

export interface FeedOptions {
  readonly state: ClusterState;
  readonly cluster: PodSource;
  readonly dpuHealth: Pick<DpuHealth, 'verdict'>;
  readonly decisions: Decisions;
  readonly status: () => ReplicaStatus;
  /** Milliseconds between two looks at what has changed. */
  readonly interval?: number;
  /** Milliseconds that everything is kept after the last viewer has left, so that one who comes back catches up. */
  readonly keep?: number;
}

/**
 * What the page shows, kept only while somebody looks: then it looks ten times a second at which nodes have changed, and
 * works in slices, so that the scheduler's calls are not kept waiting. With no viewer it holds nothing and does nothing.
 */
export interface Feed {
  /** Names this keeping of records: numbers of another say nothing. */
  readonly epoch: string;
  readonly records: RecordLog;
  /** Whether everything has been written down once. */
  readonly complete: boolean;
  /** Calls back when there are new records, until the returned function is called. */
  watch(onNews: () => void): () => void;
  readonly viewers: number;
  stop(): void;
}

const INTERVAL = 100;
const KEEP = 120_000;
/** Nodes that are written down between two turns of the event loop: about a millisecond. */
const SLICE = 100;
/** Shapes over and above a node each, after which everything begins anew. */
const SPARE_SHAPES = 1000;

export function createFeed(options: FeedOptions): Feed {
  const { interval = INTERVAL, keep = KEEP } = options;
  const viewers = new Set<() => void>();
  let keeping: Keeping | undefined;
  let leaving: NodeJS.Timeout | undefined;

  const tell = () => {
    for (const viewer of viewers) viewer();
  };
  const drop = () => {
    keeping?.stop();
    keeping = undefined;
    clearTimeout(leaving);
  };
  const kept = (): Keeping => {
    if (keeping === undefined) {
      keeping = new Keeping(options, interval, tell);
      keeping.start();
    }
    return keeping;
  };

  return {
    get epoch() {
      return kept().epoch;
    },
    get records() {
      return kept().records;
    },
    get complete() {
      return kept().complete;
    },
    watch(onNews) {
      clearTimeout(leaving);
      // Each viewer has a function of its own, even if it hands in the same one twice.
      const viewer = () => onNews();
      kept();
      viewers.add(viewer);
      return () => {
        if (!viewers.delete(viewer) || viewers.size > 0) return;
        leaving = setTimeout(drop, keep);
        leaving.unref();
      };
    },
    get viewers() {
      return viewers.size;
    },
    stop: drop,
  };
}

/** From the first viewer until some time after the last. */
class Keeping {
  readonly #options: FeedOptions;
  readonly #tell: () => void;
  readonly #timer: NodeJS.Timeout;
  epoch = '';
  records = new RecordLog();
  complete = false;
  #shapes = new Map<string, number>();
  #shapeOf = new WeakMap<NodeShape, number>();
  readonly #pods = new Map<string, PodView>();
  /** Numbers of nodes, and uids of pods, that are to be written down. */
  readonly #nodes = new Set<number>();
  readonly #dirtyPods = new Set<string>();
  /** The last decision about each pod that waits. */
  readonly #decided = new Map<string, Decision>();
  #changesSeen = 0;
  #decisionsSeen = 0;
  #slice: NodeJS.Immediate | undefined;

  constructor(options: FeedOptions, interval: number, tell: () => void) {
    this.#options = options;
    this.#tell = tell;
    const { cluster } = options;
    for (const pod of cluster.pods.values()) if (pod) this.#pods.set(pod.uid, pod);
    cluster.onPod((before, after) => this.#podChanged(before, after));
    this.#beginAnew();
    this.#timer = setInterval(() => this.#look(), interval);
    this.#timer.unref();
  }

  /** Looks at once, and not only with the next turn of the timer. */
  start(): void {
    this.#look();
  }

  stop(): void {
    clearInterval(this.#timer);
    clearImmediate(this.#slice);
    this.#options.cluster.onPod(undefined);
  }

  #beginAnew(): void {
    const { fleet } = this.#options.state;
    this.epoch = randomBytes(6).toString('hex');
    this.records = new RecordLog();
    this.complete = false;
    this.#shapes = new Map();
    this.#shapeOf = new WeakMap();
    this.#changesSeen = fleet.changes.count;
    this.#allNodes();
    for (const uid of this.#pods.keys()) this.#dirtyPods.add(uid);
  }

  #allNodes(): void {
    for (let id = 0; id < this.#options.state.fleet.names.size; id++) this.#nodes.add(id);
  }

  #look(): void {
    const { state, decisions, status } = this.#options;
    const { changes } = state.fleet;
    const before = this.records.last;
    this.records.put('c', replicaRecord(status()));
    const ids = changes.since(this.#changesSeen);
    this.#changesSeen = changes.count;
    if (ids === undefined) this.#allNodes();
    else for (const id of ids) this.#nodes.add(id);
    for (const decision of decisions.since(this.#decisionsSeen)) {
      this.#decided.set(decision.uid, decision);
      this.#dirtyPods.add(decision.uid);
    }
    this.#decisionsSeen = decisions.count;
    for (const uid of this.#dirtyPods) this.#writePod(uid);
    this.#dirtyPods.clear();
    if (this.records.last > before) this.#tell();
    this.#slice ??= setImmediate(() => this.#writeSlice());
  }

  #writeSlice(): void {
    this.#slice = undefined;
    const before = this.records.last;
    let left = SLICE;
    for (const id of this.#nodes) {
      this.#nodes.delete(id);
      this.#writeNode(id);
      if (--left === 0) break;
    }
    const wasComplete = this.complete;
    if (this.#nodes.size === 0) this.complete = true;
    else this.#slice = setImmediate(() => this.#writeSlice());
    if (this.#shapes.size > this.#options.state.fleet.size + SPARE_SHAPES) this.#beginAnew();
    if (this.records.last !== before || !wasComplete) this.#tell();
  }

  #writeNode(id: number): void {
    const { state, dpuHealth } = this.#options;
    const { fleet, ledger } = state;
    const name = fleet.names.nameOf(id);
    if (name === undefined) {
      this.records.end(`n${id}`, nodeEnd(id));
      return;
    }
    const inputs = {
      fleet,
      podOf: (uid: string) => this.#pods.get(uid),
      dpu: dpuHealth.verdict,
      heldOn: (node: string) => ledger.heldOn(node),
    };
    this.records.put(`n${id}`, nodeRecord(id, name, this.#shapeNumber(fleet.shape(id)), inputs));
    // Its report may say that a pod is kept from starting.
    for (const { uid } of state.startingOn(name)) this.#writePod(uid);
  }

  /** Shapes that look the same on the page (they differ in memory, say) are one here. */
  #shapeNumber(shape: NodeShape | undefined): number {
    if (shape === undefined) return NO_SHAPE;
    let number = this.#shapeOf.get(shape);
    if (number !== undefined) return number;
    const content = shapeContent(shape);
    number = this.#shapes.get(content);
    if (number === undefined) {
      number = this.#shapes.size;
      this.#shapes.set(content, number);
      this.records.put(`s${number}`, shapeRecord(number, content));
    }
    this.#shapeOf.set(shape, number);
    return number;
  }

  #podChanged(before: PodView | undefined, after: PodView | undefined): void {
    const { names } = this.#options.state.fleet;
    if (before && before.uid !== after?.uid) {
      this.#pods.delete(before.uid);
      this.#dirtyPods.add(before.uid);
    }
    if (after) {
      this.#pods.set(after.uid, after);
      this.#dirtyPods.add(after.uid);
    }
    // The node's record calls its pods by name.
    for (const node of new Set([before?.node, after?.node])) {
      const id = node === undefined ? -1 : names.find(node);
      if (id >= 0) this.#nodes.add(id);
    }
  }

  #writePod(uid: string): void {
    const pod = this.#pods.get(uid);
    // The scheduler may ask about a pod before the watch has brought it.
    const isNew = pod !== undefined && pod.node === undefined && !this.#decided.has(uid);
    const decision = isNew ? this.#options.decisions.latest(uid) : this.#decided.get(uid);
    const refusal = pod && this.#options.state.hostRefusals.of(pod.node ?? '', pod);
    if (pod && waits(pod, decision, refusal)) {
      if (decision) this.#decided.set(uid, decision);
      this.records.put(`p${uid}`, podRecord(pod, decision, refusal));
      return;
    }
    this.records.end(`p${uid}`, podEnd(uid));
    this.#decided.delete(uid);
  }
}
