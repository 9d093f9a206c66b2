import type { KubeClient } from '../../kube/client.ts';
import type { Endpoint } from '../../kube/endpoint-objects.ts';
import { createLeaderElection, type LeaseRecord } from '../../kube/leader-election.ts';
import { createEndpointPublisher } from '../../kube/service-endpoint.ts';
import { SERVICE } from '../../model/names.ts';
import type { Logger } from '../../runtime/log.ts';
import { sleep } from '../../runtime/time.ts';
import type { Replica } from './replica.ts';

/** The name of the active replica's Lease, of the Service, and of the EndpointSlice that points to that replica. */
const NAME = SERVICE;
/**
 * Seconds between checks that the Service still points to this replica. Changes by others are repaired within that
 * time.
 */
const CHECK = 10;
const RETRY = 1;

/** Settings of a replica: its Lease and its Service, and the address that it publishes while it is the active one. */
export interface ReplicaSettings {
  readonly namespace: string;
  /** Undefined if nothing is published. */
  readonly podIp?: string | undefined;
  readonly podName?: string | undefined;
  readonly nodeName?: string | undefined;
}

export interface ElectedReplicaOptions {
  readonly config: ReplicaSettings;
  readonly client: KubeClient;
  /** Unique among the replicas. */
  readonly identity: string;
  /** The port that the Service points to. */
  readonly port: () => number;
  /** The record that the active replica passes on to the next. */
  readonly record: LeaseRecord;
  /** Reads the pods that the scheduler bound for the previous replica. @throws KubeError */
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
  /** Number of leadership changes, so that none is missed during a wait. */
  let changes = 0;
  let wake: () => void = () => undefined;
  /** Set when the process is about to end: it publishes nothing more. */
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

  /** Catches up, then points the Service to this replica. @returns seconds until the next check */
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
    // The Service stops pointing here while no other replica can be active yet and this one still answers.
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
