import { formatMicroTime } from '../model/lease/renew-time.ts';
import type { Logger } from '../runtime/log.ts';
import { sleep } from '../runtime/time.ts';
import type { KubeClient } from './client.ts';
import { isAlreadyExists, isConflict, isNotFound } from './errors.ts';
import { type Lease, lease as leaseSchema } from './resources.ts';

/**
 * Elects one of several replicas by a Lease.
 *
 * The holder renews the Lease. Another replica takes over when it has not seen the Lease *change* for the whole
 * duration by its own monotonic clock: no two clocks are compared. The holder measures from the moment before it sent
 * its last successful renewal and subtracts a margin. It therefore stops before another replica can start, even if its
 * process was suspended: `isLeader` checks the deadline at the moment of the decision, not a timer.
 *
 * Source: k8s.io/client-go/tools/leaderelection, which compares observed records in the same way.
 */
export interface LeaderElection {
  /** Takes part in the election until the signal is aborted; never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Whether this replica leads at the moment of the call. */
  isLeader(): boolean;
  /** Whether the leader is known: this process, or the holder of the Lease as last read. */
  readonly settled: boolean;
  /** Identity of the leader, from the Lease as last read; undefined if there is no leader. */
  readonly holder: string | undefined;
  /** Releases the Lease permanently, so that another replica does not wait until it expires. Never rejects. */
  release(): Promise<void>;
}

export interface LeaseRecord {
  readonly annotation: string;
  /** The annotation's value, at most 256 KiB (the API server's limit); undefined: no annotation. */
  write(): string | undefined;
  /** Called before onChange with the annotation of the previous leader. The text is unverified. */
  read(text: string | undefined): void;
}

export interface LeaderElectionOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Identity of this replica, unique among the replicas. */
  readonly identity: string;
  /** Duration of the Lease in whole seconds. Default 8. */
  readonly duration?: number;
  /** Seconds between renewals, and between reads by candidates. Default 2. */
  readonly interval?: number;
  /** An annotation of the Lease that the leader writes with each renewal, for the next leader. */
  readonly record?: LeaseRecord;
  /** Called when this replica becomes the leader and when it stops being the leader. */
  readonly onChange: (leads: boolean) => void;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
  /** Milliseconds since 1970, only for people who read the Lease. */
  readonly wallClock?: () => number;
}

/** Stands for the version of a Lease that has changed and that could not be read since. */
const UNREAD = '';

/** Upper limit, in seconds, of the lease duration of another holder: a forged Lease must not end elections. */
const LONGEST = 60;
/** The part of the duration by which the holder stops earlier than others may start. */
const MARGIN = 0.25;

/**
 * Creates a candidate for a Lease; it takes part while it runs. `duration` and `interval` are in seconds.
 *
 * Source: client-go, tools/leaderelection/leaderelection.go.
 */
export function createLeaderElection(options: LeaderElectionOptions): LeaderElection {
  const { client, namespace, name, identity, duration = 8, interval = 2, record, onChange, log, now } = options;
  const { wallClock = Date.now } = options;
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const path = `${collection}/${name}`;
  let deadline = Number.NEGATIVE_INFINITY;
  let leading = false;
  let settled = false;
  /** Whether this replica released the Lease. It takes no further part in the election. */
  let ended = false;
  let underWay: Promise<void> = Promise.resolve();
  let holder: string | undefined;
  const others = createObservation({ identity, duration, now });

  const isLeader = () => now() < deadline;

  /**
   * Also called before each renewal takes effect: a Lease that has expired is lost even if this replica wins it again
   * at once, because others may have acted in between.
   */
  const tell = () => {
    if (leading === isLeader()) return;
    leading = !leading;
    log.info({ lease: name, identity }, leading ? 'elected leader' : 'lost leadership');
    onChange(leading);
  };

  const specOf = (held: Lease['spec'] | undefined) => {
    const time = formatMicroTime(BigInt(wallClock()) * 1000n);
    const mine = held?.holderIdentity === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: duration,
      renewTime: time,
      acquireTime: mine ? (held?.acquireTime ?? time) : time,
      leaseTransitions: (held?.leaseTransitions ?? 0) + (mine ? 0 : 1),
    };
  };

  const objectOf = (held: Lease | undefined, leads = leading) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name,
      namespace,
      ...(held && { resourceVersion: held.metadata.resourceVersion }),
      ...annotationsOf(record, held, leads),
    },
    spec: specOf(held?.spec),
  });

  const read = async (signal: AbortSignal): Promise<Lease | undefined> => {
    try {
      return leaseSchema.parse(await client.get(path, { signal, timeout: interval }));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };

  const round = async (signal: AbortSignal): Promise<void> => {
    const held = await read(signal);
    settled = true;
    holder = held?.spec?.holderIdentity;
    others.saw(held);
    if (!others.haveStopped()) {
      deadline = Number.NEGATIVE_INFINITY;
      return;
    }
    const begun = now();
    const request = { signal, timeout: interval };
    try {
      if (held === undefined) await client.create(collection, objectOf(held), request);
      else await client.replace(path, objectOf(held), request);
      tell();
      if (!leading) record?.read(held?.metadata.annotations?.[record.annotation]);
      deadline = begun + duration * (1 - MARGIN);
    } catch (error) {
      if (!isConflict(error) && !isAlreadyExists(error)) throw error;
      others.wereQuicker();
      deadline = Number.NEGATIVE_INFINITY;
    }
  };

  return {
    isLeader,
    get settled() {
      return settled;
    },
    get holder() {
      if (isLeader()) return identity;
      return holder === '' || holder === identity ? undefined : holder;
    },
    async run(signal) {
      while (!signal.aborted && !ended) {
        tell();
        try {
          underWay = round(signal);
          await underWay;
        } catch (err) {
          if (!signal.aborted) log.warn({ err, lease: name }, 'reading or renewing the leader lease failed');
        }
        if (signal.aborted) break;
        tell();
        await sleep(isLeader() || !leading ? interval : 0, signal).catch(() => undefined);
      }
    },
    async release() {
      ended = true;
      // A renewal that is still in flight would take the Lease back.
      await underWay.catch(() => undefined);
      const was = isLeader();
      deadline = Number.NEGATIVE_INFINITY;
      tell();
      if (!was) return;
      try {
        const held = leaseSchema.parse(await client.get(path, { timeout: interval }));
        if (held.spec?.holderIdentity !== identity) return;
        const spec = { ...specOf(held.spec), holderIdentity: '', leaseDurationSeconds: 1 };
        await client.replace(path, { ...objectOf(held, true), spec });
      } catch (err) {
        log.warn({ err, lease: name }, 'releasing the lease failed; the next leader waits until it expires');
      }
    },
  };
}

/** A candidate that does not lead yet keeps the existing annotations. */
function annotationsOf(record: LeaseRecord | undefined, held: Lease | undefined, leads: boolean) {
  if (record === undefined) return undefined;
  const text = leads ? record.write() : held?.metadata.annotations?.[record.annotation];
  return text === undefined ? {} : { annotations: { [record.annotation]: text } };
}

/**
 * Tracks how long another process may still consider itself the leader: for the duration of the Lease since its last
 * observed change. The holder of a deleted Lease may have renewed it after the last read, so a deletion counts as a
 * change. A write conflict with another replica counts as a change as well.
 */
function createObservation({
  identity,
  duration,
  now,
}: Required<Pick<LeaderElectionOptions, 'identity' | 'duration' | 'now'>>) {
  let observed: { readonly version: string; readonly at: number; readonly lasts: number } | undefined;
  return {
    saw(held: Lease | undefined): void {
      if (held === undefined) {
        if (observed !== undefined && observed.version !== UNREAD)
          observed = { ...observed, version: UNREAD, at: now() };
        return;
      }
      const version = held.metadata.resourceVersion ?? UNREAD;
      const { holderIdentity, leaseDurationSeconds = duration } = held.spec ?? {};
      const isNobodys = holderIdentity === undefined || holderIdentity === '' || holderIdentity === identity;
      if (observed?.version !== version) {
        const lasts = isNobodys ? 0 : Math.min(Math.max(leaseDurationSeconds, 1), LONGEST);
        observed = { version, at: now(), lasts };
      }
    },
    wereQuicker(): void {
      observed = { version: UNREAD, at: now(), lasts: duration };
    },
    haveStopped: () => observed === undefined || now() - observed.at >= observed.lasts,
  };
}
