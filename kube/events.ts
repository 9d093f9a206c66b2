import type { Logger } from '../runtime/log.ts';
import { isAlreadyExists, type KubeClient } from './client.ts';

export interface EventTarget {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
}

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  /** Stable reason in CamelCase: `PaddedToWholeCores`. */
  readonly reason: string;
  /** Description of what happened to the object, for users of `kubectl describe`. */
  readonly message: string;
}

/**
 * A Node as the target of an Event. Its uid is its name, as in the kubelet's Events: `kubectl describe node` searches
 * by that uid.
 */
export function nodeTarget(name: string): EventTarget {
  return { apiVersion: 'v1', kind: 'Node', name, uid: name };
}

/**
 * Writes Kubernetes Events. It never throws and never delays the caller: Events are best effort. Their number is
 * limited for each object and for the process, because tenants can cause them.
 */
export type EventRecorder = ReturnType<typeof createEventRecorder>;

/** The API server rejects longer messages. */
const MAX_MESSAGE_CHARACTERS = 1024;
/** Seconds in which the same Event on the same object is written once. */
const SAME_WITHIN = 60;
const REMEMBERED = 1000;
/** Burst of Events for each object, and seconds for each further one; as in client-go's spam filter. */
const BURST = 25;
const SECONDS_EACH = 300;
/** Writes in flight; further Events are dropped. */
const MAX_PENDING = 64;
/** Seconds between two log lines about dropped Events. */
const SAID_AGAIN = 60;

interface EventRecorderOptions {
  readonly client: KubeClient;
  readonly component: string;
  /** Name of the node, for a daemon that runs on one. */
  readonly host?: string;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/**
 * Creates a recorder. It sends Events in the background, within a budget, and drops repeated ones. It never rejects.
 */
export function createEventRecorder({ client, component, host, log, now }: EventRecorderOptions) {
  const recent = new Map<string, number>();
  const pending = new Set<Promise<void>>();
  let sequence = 0;

  const budgets = createBudgets(now);
  let dropped = 0;
  let saidAt = Number.NEGATIVE_INFINITY;

  const drop = (why: string): void => {
    dropped++;
    if (now() - saidAt < SAID_AGAIN) return;
    saidAt = now();
    log.warn({ dropped, why }, 'Events dropped');
  };

  const isRepeated = (key: string): boolean => {
    const last = recent.get(key);
    if (last !== undefined && now() - last < SAME_WITHIN) return true;
    recent.delete(key);
    recent.set(key, now());
    if (recent.size > REMEMBERED) recent.delete(recent.keys().next().value ?? '');
    return false;
  };

  const write = async (target: EventTarget, event: EventText): Promise<void> => {
    const namespace = target.namespace ?? 'default';
    const time = new Date();
    // The name must be unique for each Event: the object's name, the time, and a counter of this process.
    const name = `${target.name.slice(0, 200)}.${(time.getTime() * 1000 + (sequence++ % 1000)).toString(16)}`;
    const timestamp = `${time.toISOString().slice(0, 19)}Z`;
    try {
      await client.create(`/api/v1/namespaces/${namespace}/events`, {
        apiVersion: 'v1',
        kind: 'Event',
        // The policy plumbline-node-agent-events selects Events by it.
        metadata: { name, namespace, labels: { 'plumbline.dev/component': component } },
        involvedObject: { ...target },
        type: event.type,
        reason: event.reason,
        message: event.message.slice(0, MAX_MESSAGE_CHARACTERS),
        source: { component, ...(host === undefined ? {} : { host }) },
        reportingComponent: component,
        reportingInstance: host ?? '',
        firstTimestamp: timestamp,
        lastTimestamp: timestamp,
        count: 1,
      });
    } catch (err) {
      if (!isAlreadyExists(err)) log.warn({ err, event: event.reason, object: target.name }, 'writing an Event failed');
    }
  };

  return {
    record(target: EventTarget, event: EventText) {
      if (isRepeated([target.kind, target.namespace, target.name, target.uid, event.reason, event.message].join('\0')))
        return;
      if (pending.size >= MAX_PENDING) return drop('too many writes are under way');
      if (!budgets.take([target.kind, target.namespace, target.name, target.uid].join('\0'))) {
        return drop('too many Events of one object');
      }
      const writing = write(target, event).finally(() => pending.delete(writing));
      pending.add(writing);
    },
    /** Resolves when all Events recorded so far are written or dropped. */
    async flush() {
      await Promise.all(pending);
    },
  };
}

/** A token bucket for each object. It drops the buckets of the objects whose last Event is oldest. */
function createBudgets(now: () => number) {
  const budgets = new Map<string, { tokens: number; at: number }>();
  return {
    take(object: string): boolean {
      const { tokens: left, at } = budgets.get(object) ?? { tokens: BURST, at: now() };
      const tokens = Math.min(BURST, left + (now() - at) / SECONDS_EACH);
      budgets.delete(object);
      budgets.set(object, { tokens: tokens < 1 ? tokens : tokens - 1, at: now() });
      const [oldest] = budgets.keys();
      if (budgets.size > REMEMBERED && oldest !== undefined) budgets.delete(oldest);
      return tokens >= 1;
    },
  };
}
