import type { KubeClient } from '../kube/client.ts';
import { createLeaderElection } from '../kube/leader-election.ts';
import { createEndpointPublisher } from '../kube/service-endpoint.ts';
import type { Logger } from '../runtime/log.ts';
import { sleep } from '../runtime/time.ts';
import type { SchedulerPluginConfig } from './config.ts';

/** The Lease of the active replica, the Service in front of it, and the EndpointSlice that leads there. */
const NAME = 'plumbline-scheduler-plugin';
/** Seconds between looks whether the Service still leads here. */
const CHECK = 10;
const RETRY = 1;

/** Whether this replica is the one that decides. Of several only one is; all of them are ready. */
export interface ActiveReplica {
  run(signal: AbortSignal): Promise<void>;
  /** Asked before and after each verdict: true only within the lease and once all that was bound is known. */
  isActive(): boolean;
  /** Whether it is known who decides. */
  readonly settled: boolean;
  /** The identity of the replica that decides, as far as it is known. */
  readonly holder: string | undefined;
  /** Lets another replica decide. */
  release(): Promise<void>;
}

export interface ActiveReplicaOptions {
  readonly config: SchedulerPluginConfig;
  readonly client: KubeClient;
  /** Unique among the replicas. */
  readonly identity: string;
  /** The port that the Service leads to. */
  readonly port: () => number;
  /** Learns what was bound by the replica before. @throws KubeError */
  readonly catchUp: (signal: AbortSignal) => Promise<void>;
  readonly onActive: () => void;
  readonly onPassive: () => void;
  readonly log: Logger;
  readonly now: () => number;
}

export function createActiveReplica(options: ActiveReplicaOptions): ActiveReplica {
  const { config, client, identity, port, catchUp, onActive, onPassive, log, now } = options;
  const { namespace, podIp, podName, nodeName } = config;
  const elects = config.leaderElect === 'true';
  const publisher = createEndpointPublisher({ client, namespace, service: NAME, log });
  let leads = false;
  let caughtUp = !elects;
  /** Counts changes of leadership, so that none is slept through. */
  let changes = 0;
  let wake: () => void = () => undefined;

  const election = createLeaderElection({
    client,
    namespace,
    name: NAME,
    identity,
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
  const isActive = () => caughtUp && (!elects || election.isLeader());

  const takeOver = async (signal: AbortSignal): Promise<void> => {
    try {
      await catchUp(signal);
    } catch (err) {
      if (!signal.aborted) log.warn({ err }, 'could not read the pods that are on their way; not deciding yet');
      return;
    }
    if (!leads) return;
    caughtUp = true;
    onActive();
  };

  /** Catches up, then sees to it that the Service leads here. Returns in how many seconds to look again. */
  const look = async (signal: AbortSignal): Promise<number> => {
    if (leads && !caughtUp) await takeOver(signal);
    if (leads && !caughtUp) return RETRY;
    if (!isActive() || podIp === undefined) return CHECK;
    const published = await publisher.publish({ address: podIp, port: port(), portName: 'https', nodeName, podName });
    return published ? CHECK : RETRY;
  };

  const tend = async (signal: AbortSignal): Promise<void> => {
    if (!elects) onActive();
    while (!signal.aborted) {
      const seen = changes;
      const wait = await look(signal);
      if (seen !== changes) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
        void sleep(wait, signal).then(resolve, resolve);
      });
    }
  };

  return {
    isActive,
    get settled() {
      return !elects || election.settled;
    },
    get holder() {
      return elects ? election.holder : identity;
    },
    async run(signal) {
      await Promise.all([tend(signal), ...(elects ? [election.run(signal)] : [])]);
    },
    async release() {
      caughtUp = false;
      if (elects) await election.release();
    },
  };
}
