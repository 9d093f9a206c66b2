import { BoundedMap } from '../model/bounded-map.ts';
import { formatTime } from '../model/lease/timing.ts';
import type { Logger } from '../runtime/log.ts';
import { isAlreadyExists, isNotFound, type KubeClient, KubeError } from './client.ts';

export interface EventTarget {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string | undefined;
  readonly uid?: string | undefined;
}

export interface EventText {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** Its uid is its name, as in the kubelet's Events: `kubectl describe node` searches by that. */
export function nodeTarget(name: string): EventTarget {
  return { apiVersion: 'v1', kind: 'Node', name, uid: name };
}

/** Takes Events, at best effort: it never throws and never delays the caller. */
export interface EventRecorder {
  record(target: EventTarget, event: EventText): void;
  flush(): Promise<void>;
}

/** For an expected error: undefined. */
const unless = (isExpected: (error: unknown) => boolean) => (error: unknown) => {
  if (!isExpected(error)) throw error;
};

/** The API server rejects longer messages. */
const MAX_MESSAGE_CHARACTERS = 1024;
/** Seconds after which an Event that is repeated without another one between is counted in the API server. */
const REPEAT_SECONDS = 60;
const RETRY_SECONDS = 10;
const MAX_OBJECTS = 1000;
const MAX_EVENTS = 1000;
/** New Events of each object at once, and seconds for each further one; as in client-go's spam filter. */
const BURST_EVENTS = 25;
const SECONDS_PER_EVENT = 300;
/** Writes in flight; further ones wait. */
const MAX_WRITES = 64;
const LOG_SECONDS = 60;

interface EventRecorderOptions {
  readonly client: KubeClient;
  readonly component: string;
  readonly host?: string;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly nowSeconds: () => number;
}

/** One Event of the API server, and the number of times that it was recorded. */
interface EventSeries {
  readonly target: EventTarget;
  event: EventText;
  name: string;
  exists: boolean;
  readonly first: Date;
  last: Date;
  count: number;
  /** What the API server does not have yet: a repetition of the object's last Event can wait, a change cannot. */
  unwritten: 'none' | 'repetition' | 'change';
  writtenAt: number;
  isWriting: boolean;
  timer: NodeJS.Timeout | undefined;
}

interface ObjectEvents {
  last: string;
  /** Of the bucket for new Events, which was last filled `at` that time. */
  tokens: number;
  at: number;
}

/**
 * Writes Events to the API server in the background.
 *
 * - The last Event of an object is the last one that was recorded. One that was recorded before is counted: its count
 *   and its lastTimestamp change, and no new object is created.
 * - A repetition without another Event between is written after a minute; a change is written at once.
 * - Tenants can cause Events, so new objects are limited. Above the limit, the last Event with the same reason gets the
 *   new message.
 * - A write that fails because the API server does not answer is repeated. One that it refuses is dropped and logged.
 */
export class ApiEventRecorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  /** By object, reason and message, and by object and reason; the one recorded least recently is dropped first. */
  readonly #series = new BoundedMap<string, EventSeries>(2 * MAX_EVENTS);
  readonly #objects = new BoundedMap<string, ObjectEvents>(MAX_OBJECTS);
  readonly #writes = new Set<Promise<void>>();
  #sequence = 0;
  #failures = 0;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  record(target: EventTarget, event: EventText): void {
    const objectKey = [target.kind, target.namespace, target.name, target.uid].join('\0');
    const object = this.#objects.get(objectKey) ?? { last: '', tokens: BURST_EVENTS, at: this.#options.nowSeconds() };
    moveToEnd(this.#objects, objectKey, object);
    const reasonKey = `${objectKey}\0${event.reason}`;
    const key = `${reasonKey}\0${event.message}`;
    const series = this.#seriesOf(object, reasonKey, target, event);
    moveToEnd(this.#series, key, series);
    moveToEnd(this.#series, reasonKey, series);
    series.count++;
    series.last = new Date();
    if (object.last !== key) {
      object.last = key;
      series.unwritten = 'change';
      this.#writeIn(series, 0);
    } else if (series.unwritten === 'none') {
      series.unwritten = 'repetition';
      this.#writeIn(series, series.writtenAt + REPEAT_SECONDS - this.#options.nowSeconds());
    }
  }

  async flush(): Promise<void> {
    for (const series of new Set(this.#series.values())) {
      while (this.#writes.size >= MAX_WRITES) await Promise.race(this.#writes);
      if (series.unwritten !== 'none') this.#writeIn(series, 0);
    }
    while (this.#writes.size > 0) await Promise.all(this.#writes);
  }

  #seriesOf(object: ObjectEvents, reasonKey: string, target: EventTarget, event: EventText): EventSeries {
    const same = this.#series.get(`${reasonKey}\0${event.message}`);
    if (same?.event.message === event.message) return same;
    const latest = this.#series.get(reasonKey);
    if (!this.#takeToken(object) && latest !== undefined) {
      latest.event = event;
      return latest;
    }
    const time = new Date();
    const name = this.#newName(target, time);
    const state = { exists: false, unwritten: 'none', isWriting: false, writtenAt: 0, timer: undefined } as const;
    return { target, event, name, first: time, last: time, count: 0, ...state };
  }

  #takeToken(object: ObjectEvents): boolean {
    const now = this.#options.nowSeconds();
    const tokens = Math.min(BURST_EVENTS, object.tokens + (now - object.at) / SECONDS_PER_EVENT);
    object.tokens = tokens < 1 ? tokens : tokens - 1;
    object.at = now;
    return tokens >= 1;
  }

  #writeIn(series: EventSeries, seconds: number): void {
    if (series.isWriting) return;
    clearTimeout(series.timer);
    const isFull = this.#writes.size >= MAX_WRITES;
    if (seconds <= 0 && !isFull) {
      const write = this.#write(series).finally(() => this.#writes.delete(write));
      this.#writes.add(write);
      return;
    }
    series.timer = setTimeout(() => this.#writeIn(series, 0), Math.max(isFull ? 1 : 0, seconds) * 1000).unref();
  }

  async #write(series: EventSeries): Promise<void> {
    const { unwritten } = series;
    series.isWriting = true;
    series.unwritten = 'none';
    let wait = 0;
    try {
      await this.#send(series);
    } catch (error) {
      this.#logFailure(error, series);
      if (!isRefused(error)) {
        // A change that was recorded during the write stays one.
        if (series.unwritten === 'none') series.unwritten = unwritten;
        wait = RETRY_SECONDS;
      }
    }
    series.isWriting = false;
    series.writtenAt = this.#options.nowSeconds();
    if (series.unwritten === 'repetition' && wait === 0) wait = REPEAT_SECONDS;
    if (series.unwritten !== 'none') this.#writeIn(series, wait);
  }

  /** @throws KubeError */
  async #send(series: EventSeries): Promise<void> {
    const { client } = this.#options;
    const { target, event, last, count } = series;
    const path = `/api/v1/namespaces/${target.namespace ?? 'default'}/events`;
    const message = event.message.slice(0, MAX_MESSAGE_CHARACTERS);
    const changes = { type: event.type, message, lastTimestamp: formatTime(last.getTime()), count };
    const create = () => client.create(path, { ...this.#newEvent(series), ...changes });
    if (!series.exists) {
      const isNew = await create().then(() => true, unless(isAlreadyExists));
      series.exists = true;
      if (isNew) return;
    }
    const patched = client.patch(`${path}/${series.name}`, 'application/merge-patch+json', changes);
    if (await patched.then(() => true, unless(isNotFound))) return;
    // The API server deletes Events after an hour.
    series.name = this.#newName(target, last);
    await create();
  }

  #newEvent({ target, event, name, first }: EventSeries) {
    const { component, host } = this.#options;
    return {
      apiVersion: 'v1',
      kind: 'Event',
      // The policy plumbline-node-agent-events selects Events by the label.
      metadata: { name, namespace: target.namespace ?? 'default', labels: { 'plumbline.dev/component': component } },
      involvedObject: { ...target },
      reason: event.reason,
      source: { component, ...(host === undefined ? {} : { host }) },
      reportingComponent: component,
      reportingInstance: host ?? '',
      firstTimestamp: formatTime(first.getTime()),
    };
  }

  #newName(target: EventTarget, time: Date): string {
    return `${target.name.slice(0, 200)}.${(time.getTime() * 1000 + (this.#sequence++ % 1000)).toString(16)}`;
  }

  #logFailure(err: unknown, { event, target }: EventSeries): void {
    this.#failures++;
    const now = this.#options.nowSeconds();
    if (now - this.#loggedAt < LOG_SECONDS) return;
    this.#loggedAt = now;
    const object = target.namespace === undefined ? target.name : `${target.namespace}/${target.name}`;
    const fields = { err, event: event.reason, object, failures: this.#failures };
    this.#options.log.warn(fields, 'writing an Event failed');
  }
}

/** Whether the API server answered that it will not take the Event: its namespace is gone, or a policy denies it. */
function isRefused(error: unknown): boolean {
  return error instanceof KubeError && error.status >= 400 && error.status < 500 && error.status !== 429;
}

function moveToEnd<V>(map: BoundedMap<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
}
