import type * as z from 'zod';
import type { KubeClient } from '../../kube/client.ts';
import { lease } from '../../kube/resources.ts';
import { nextRenewTime, parseMicroTime } from '../../model/lease/renew-time.ts';
import type { LeaseOwner } from '../../model/lease/repair.ts';

export type LeaseObject = z.infer<typeof lease>;

/** The namespace and name of a Lease. */
export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/** The content of a new Lease. Without a renewTime it counts as never renewed. */
export interface NewLease {
  readonly owner: LeaseOwner;
  readonly holder: string;
  /** Seconds that a renewal is valid, as an integer. */
  readonly duration: number;
  readonly renewTime?: string;
}

const collection = ({ namespace }: LeaseName) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
const pathOf = (id: LeaseName) => `${collection(id)}/${id.name}`;

/** Reads a Lease. @throws KubeError */
export async function readLease(client: KubeClient, id: LeaseName, signal: AbortSignal): Promise<LeaseObject> {
  return lease.parse(await client.get(pathOf(id), { signal }));
}

/** Creates a Lease. @throws KubeError */
export async function createLease(
  client: KubeClient,
  id: LeaseName,
  { owner, holder, duration, renewTime }: NewLease,
  signal: AbortSignal,
): Promise<void> {
  const object = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...id, ownerReferences: [owner] },
    spec: { holderIdentity: holder, leaseDurationSeconds: duration, ...(renewTime !== undefined && { renewTime }) },
  };
  await client.create(collection(id), object, { signal });
}

/** Changes fields of the Lease (merge patch). @throws KubeError */
export async function patchLease(
  client: KubeClient,
  id: LeaseName,
  patch: object,
  signal: AbortSignal,
): Promise<LeaseObject> {
  return lease.parse(await client.patch(pathOf(id), 'application/merge-patch+json', patch, { signal }));
}

/** Creates renewTimes that always increase, even if the clock is set back: observers detect changes. */
export interface Renewals {
  /** Continues after a renewTime that was read, for a restarted process. */
  seen(renewTime: string | null | undefined): void;
  next(): string;
}

/** Creates the counter. @param wallClock milliseconds since the epoch */
export function createRenewals(wallClock: () => number): Renewals {
  let last: string | null | undefined;
  return {
    seen(renewTime) {
      const seen = parseMicroTime(renewTime ?? '');
      if (seen !== undefined && seen > (parseMicroTime(last ?? '') ?? 0n)) last = renewTime;
    },
    next() {
      last = nextRenewTime(last, BigInt(Math.floor(wallClock() * 1000)));
      return last;
    },
  };
}
