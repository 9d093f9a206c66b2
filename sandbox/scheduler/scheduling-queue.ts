import { type JsonValue, type KubeNode, type KubePod, sameJson } from '../objects.ts';

interface Waiting {
  attempts: number;
  state: 'active' | 'errorBackoff' | 'unschedulable' | 'inFlight';
  since: number;
  signalsAtPop: number;
}

/** Seconds that a rejected pod waits without an event: podMaxInUnschedulablePodsDuration of kube-scheduler. */
const FLUSH_SECONDS = 300;

/**
 * kube-scheduler's queue. Active pods are first in, first out; a rejected pod waits for an event or the flush; a pod
 * whose attempt failed backs off. An event makes rejected pods active at once, as with SchedulerPopFromBackoffQ (1.33).
 * @param nowSeconds monotonic
 */
export function createSchedulingQueue(
  nowSeconds: () => number,
  initialBackoffSeconds: number,
  maxBackoffSeconds: number,
) {
  const pods = new Map<string, Waiting>();
  let signals = 0;

  const enter = (uid: string, state: Waiting['state']) => {
    const waiting = pods.get(uid) ?? { attempts: 0, state, since: 0, signalsAtPop: 0 };
    // Inserting again moves it to the end: the order of the map is the order of the queue.
    pods.delete(uid);
    pods.set(uid, { ...waiting, state, since: nowSeconds() });
  };
  const backoffSeconds = ({ attempts }: Waiting) =>
    Math.min(initialBackoffSeconds * 2 ** Math.max(0, attempts - 1), maxBackoffSeconds);
  const dueAt = (waiting: Waiting): number => {
    const errorBackoff = backoffSeconds(waiting);
    const waits = { active: 0, errorBackoff, unschedulable: FLUSH_SECONDS, inFlight: Number.POSITIVE_INFINITY };
    return waiting.since + waits[waiting.state];
  };
  const first = (states: readonly Waiting['state'][]) =>
    [...pods].find(([, waiting]) => states.includes(waiting.state) && dueAt(waiting) <= nowSeconds())?.[0];

  return {
    add(uid: string) {
      if (pods.get(uid)?.state !== 'inFlight') enter(uid, 'active');
      else signals++;
    },
    remove: (uid: string) => void pods.delete(uid),
    pop() {
      const uid = first(['active']) ?? first(['errorBackoff', 'unschedulable']);
      if (uid === undefined) return undefined;
      enter(uid, 'inFlight');
      const waiting = pods.get(uid)!;
      waiting.attempts++;
      waiting.signalsAtPop = signals;
      return uid;
    },
    /** The popped pod fits no node: it waits for an event, unless one arrived during the attempt. */
    unschedulable(uid: string) {
      const waiting = pods.get(uid);
      if (waiting) enter(uid, waiting.signalsAtPop === signals ? 'unschedulable' : 'active');
    },
    failed(uid: string) {
      if (pods.has(uid)) enter(uid, 'errorBackoff');
    },
    /** A change may have freed room: every waiting pod is retried. */
    wake() {
      signals++;
      for (const [uid, waiting] of [...pods]) if (waiting.state === 'unschedulable') enter(uid, 'active');
    },
    /** Seconds until pop() may return a pod without an event, or undefined if never. */
    nextDue() {
      const due = Math.min(...[...pods.values()].map(dueAt));
      return Number.isFinite(due) ? Math.max(0, due - nowSeconds()) : undefined;
    },
  };
}

/** Whether a Node's change makes kube-scheduler retry rejected pods; a heartbeat does not. */
export function nodeWakes(node: KubeNode, previous: KubeNode | undefined): boolean {
  return previous === undefined || !sameJson(facts(node), facts(previous));
}

function facts({ metadata, spec, status }: KubeNode): JsonValue {
  return {
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    taints: spec?.taints ?? [],
    unschedulable: spec?.unschedulable ?? false,
    allocatable: status?.allocatable ?? {},
    conditions: Object.fromEntries((status?.conditions ?? []).map((condition) => [condition.type, condition.status])),
  };
}

/** Whether a pod's change makes kube-scheduler retry rejected pods: every add, update and delete of a pod on a node. */
export const podWakes = (pod: KubePod, previous: KubePod | undefined) =>
  Boolean(pod.spec.nodeName || previous?.spec.nodeName);

/** Whether a waiting pod changed in a field that affects its scheduling: anything but its status and bookkeeping. */
export function podChangedItself(pod: KubePod, previous: KubePod): boolean {
  const schedulingFields = ({ metadata: { labels = {}, annotations = {} }, spec }: KubePod): JsonValue => {
    return { labels, annotations, spec };
  };
  return !sameJson(schedulingFields(pod), schedulingFields(previous));
}
