import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { formatMicroTime } from '../../model/lease/renew-time.ts';
import { LEASES } from '../api-server/built-in-types.ts';
import { apiVersionOf } from '../api-server/resource-types.ts';
import type { LocalClient } from '../clients/local-client.ts';
import type { KubeObject } from '../objects.ts';
import type { LeaderElectionSettings } from './configuration.ts';

/** The Lease that a scheduler holds while it runs. Each scheduler name is unique here, so there is no contention. */
export interface LeaderLease {
  start(): Promise<void>;
  /** Releases the Lease, as kube-scheduler does when it exits. */
  stop(): Promise<void>;
}

export interface LeaderLeaseOptions {
  readonly client: LocalClient;
  readonly settings: LeaderElectionSettings;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly onFault: (error: unknown) => void;
}

export function createLeaderLease({ client, settings, now, onFault }: LeaderLeaseOptions): LeaderLease {
  const { resourceNamespace: namespace, resourceName: name, leaseDuration, retryPeriod } = settings;
  // In the format of kube-scheduler's identity: cmd/kube-scheduler/app/options.
  const identity = `${hostname()}_${randomUUID()}`;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const write = async (holderIdentity: string): Promise<void> => {
    const spec = {
      holderIdentity,
      leaseDurationSeconds: Math.round(leaseDuration / 1000),
      renewTime: formatMicroTime(BigInt(now()) * 1000n),
    };
    const lease: KubeObject = {
      apiVersion: apiVersionOf(LEASES),
      kind: LEASES.kind,
      metadata: { name, namespace },
      spec,
    };
    if (!client.get(LEASES, namespace, name)) await client.create(LEASES, lease);
    else {
      await client.edit(LEASES, lease, (draft) => {
        draft['spec'] = spec;
      });
    }
  };
  return {
    async start() {
      await write(identity);
      timer = setInterval(() => {
        writing = write(identity).catch(onFault);
      }, retryPeriod);
    },
    async stop() {
      clearInterval(timer);
      await writing;
      await write('').catch(onFault);
    },
  };
}
