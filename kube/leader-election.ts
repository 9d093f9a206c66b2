import { formatMicroTime } from '../model/lease/renew-time.ts';
import type { Logger } from '../runtime/log.ts';
import { sleep } from '../runtime/time.ts';
import type { KubeClient } from './client.ts';
import { isAlreadyExists, isConflict, isNotFound } from './errors.ts';
import { type Lease, lease as leaseSchema } from './resources.ts';

/**
 * Elects one of several replicas by a Lease.
 *
 * The holder renews. Who does not hold takes over when it has not seen the Lease *change* for the whole duration by its
 * own monotonic clock: no two clocks are compared. The holder counts from the moment before it sent its last renewal that
 * succeeded, less a margin, and so has stopped before anybody else can begin, even if its process was suspended: the
 * deadline is asked for by `isLeader` at the moment of the decision and not set by a timer.
 *
 * Source of the scheme: k8s.io/client-go/tools/leaderelection, which compares observed records in the same way.
 */
export interface LeaderElection {
  /** Takes part until the signal is aborted; never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Whether this replica may act at this very moment. */
  isLeader(): boolean;
  /** Whether it is known who leads: this process, or the holder of the Lease that was read. */
  readonly settled: boolean;
  /** The identity of who leads, as the Lease was last read; undefined if there is no leader. */
  readonly holder: string | undefined;
  /** Releases the Lease permanently, so that another replica need not wait for its expiry. Never rejects. */
  release(): Promise<void>;
}

export interface LeaseRecord {
  readonly annotation: string;
  /** At most 256 KiB, the API server's bound on annotations; undefined: no annotation. */
  write(): string | undefined;
  /** Called before onChange with what the last leader wrote, which is that leader's word. */
  read(text: string | undefined): void;
}

export interface LeaderElectionOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly name: string;
  /** Unique among the replicas. */
  readonly identity: string;
  /** Whole seconds that a renewal counts. Default 8. */
  readonly duration?: number;
  /** Seconds between renewals, and between looks. Default 2. */
  readonly interval?: number;
  /** What the leader writes into an annotation of the Lease with each renewal, for who leads next. */
  readonly record?: LeaseRecord;
  /** Called when this replica has become the leader, and when it is one no more. */
  readonly onChange: (leads: boolean) => void;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
  /** Milliseconds since 1970, for people who read the Lease. */
  readonly wallClock?: () => number;
}

/** Stands for the version of a Lease that has changed and could not be read since. */
const UNREAD = '';

/** Upper bound, in seconds, of another holder's lease duration, whatever its Lease says: a forged one must not end elections. */
const LONGEST = 60;
/** Of the duration, how much the holder stops earlier than others may begin. */
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
  /** It was given up: who is about to end takes no more part. */
  let ended = false;
  let underWay: Promise<void> = Promise.resolve();
  let holder: string | undefined;
  const others = createObservation({ identity, duration, now });

  const isLeader = () => now() < deadline;

  /**
   * Asked before each renewal counts as well: a lease that ran out is lost even if it is won again at once, since
   * others may have acted in between.
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
      // A renewal that is on its way would take it back.
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

/** A candidate that does not lead yet hands on what is there. */
function annotationsOf(record: LeaseRecord | undefined, held: Lease | undefined, leads: boolean) {
  if (record === undefined) return {};
  const text = leads ? record.write() : held?.metadata.annotations?.[record.annotation];
  return text === undefined ? {} : { annotations: { [record.annotation]: text } };
}

/**
 * How long another process may think that it leads: from when the Lease was last seen to have changed, for its duration.
 * A Lease that was deleted still has its holder, who may have renewed it after it was last seen: so that it is gone
 * counts as a change, and so does that another was quicker to write it.
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
