import type { KubeClient } from '../../kube/client.ts';
import type { Endpoint } from '../../kube/endpoint-objects.ts';
import { createLeaderElection, type LeaseRecord } from '../../kube/leader-election.ts';
import { createEndpointPublisher } from '../../kube/service-endpoint.ts';
import { SERVICE } from '../../model/names.ts';
import type { Logger } from '../../runtime/log.ts';
import { sleep } from '../../runtime/time.ts';
import type { Replica } from './replica.ts';

/** The Lease of the active replica, the Service in front of it, and the EndpointSlice that leads there. */
const NAME = SERVICE;
/** Seconds between checks that the Service still leads here: within so long, changes by others are repaired. */
const CHECK = 10;
const RETRY = 1;

/** Settings of the replica: where its Lease and its Service are, and what is published while it is the active one. */
export interface ReplicaSettings {
  readonly namespace: string;
  /** Undefined: nothing is published. */
  readonly podIp?: string | undefined;
  readonly podName?: string | undefined;
  readonly nodeName?: string | undefined;
}

export interface ElectedReplicaOptions {
  readonly config: ReplicaSettings;
  readonly client: KubeClient;
  /** Unique among the replicas. */
  readonly identity: string;
  /** The port that the Service leads to. */
  readonly port: () => number;
  /** What the replica that decides hands on to the next. */
  readonly record: LeaseRecord;
  /** Reads what the replica before has had bound. @throws KubeError */
  readonly catchUp: (signal: AbortSignal) => Promise<void>;
  readonly onActive: () => void;
  readonly onPassive: () => void;
  readonly log: Logger;
  /** Monotonic seconds. */
  readonly now: () => number;
}

/** Replicas behind a Service: they elect one, which publishes itself as the Service's only endpoint. */
export function createElectedReplica(options: ElectedReplicaOptions): Replica {
  const { config, client, identity, port, record, catchUp, onActive, onPassive, log, now } = options;
  const { namespace, podIp, podName, nodeName } = config;
  const publisher = createEndpointPublisher({ client, namespace, service: NAME, log });
  let leads = false;
  let caughtUp = false;
  /** Counts changes of leadership, so that none is slept through. */
  let changes = 0;
  let wake: () => void = () => undefined;
  /** The process is about to end: it publishes nothing more. */
  let leaving = false;
  let publishing: Promise<unknown> = Promise.resolve();

  const election = createLeaderElection({
    client,
    namespace,
    name: NAME,
    identity,
    record,
    onChange: (now) => {
      leads = now;
      if (!now) {
        caughtUp = false;
        onPassive();
      }
      changes++;
      wake();
    },
    log,
    now,
  });
  const isActive = () => caughtUp && election.isLeader();

  const ownEndpoint = (): Endpoint | undefined =>
    podIp === undefined ? undefined : { address: podIp, port: port(), portName: 'https', nodeName, podName };

  const takeOver = async (signal: AbortSignal): Promise<void> => {
    try {
      await catchUp(signal);
    } catch (err) {
      if (!signal.aborted) log.warn({ err }, 'reading recently bound pods failed; retrying');
      return;
    }
    if (!leads) return;
    caughtUp = true;
    onActive();
  };

  /** Catches up, then makes the Service lead here. Returns in how many seconds to check again. */
  const check = async (signal: AbortSignal): Promise<number> => {
    if (leads && !caughtUp) await takeOver(signal);
    if (leads && !caughtUp) return RETRY;
    const endpoint = ownEndpoint();
    if (!isActive() || leaving || endpoint === undefined) return CHECK;
    const published = publisher.publish(endpoint);
    publishing = published;
    return (await published) ? CHECK : RETRY;
  };

  const tend = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      const seen = changes;
      const wait = await check(signal);
      if (seen !== changes) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
        void sleep(wait, signal).then(resolve, resolve);
      });
    }
  };

  return {
    isActive,
    mayAnswer: isActive,
    called: () => Promise.resolve(),
    get settled() {
      return election.settled;
    },
    async run(signal) {
      await Promise.all([tend(signal), election.run(signal)]);
    },
    // The Service stops leading here while no other replica can be active yet and while this one still answers.
    async release() {
      leaving = true;
      await publishing;
      const endpoint = ownEndpoint();
      if (endpoint !== undefined) await publisher.withdraw(endpoint);
      caughtUp = false;
      await election.release();
    },
  };
}
