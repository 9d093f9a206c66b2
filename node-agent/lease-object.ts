import type * as z from 'zod';
import type { KubeClient } from '../kube/client.ts';
import { lease } from '../kube/resources.ts';
import { type NodeIdentity, ownedBy } from './node-object.ts';

export type LeaseObject = z.infer<typeof lease>;

/** Where a Lease is, whose it should be and for how many seconds a renewal counts. */
export interface LeaseIdentity {
  readonly namespace: string;
  readonly name: string;
  readonly holder: string;
  readonly duration: number;
}

const collection = (namespace: string) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
const pathOf = ({ namespace, name }: LeaseIdentity) => `${collection(namespace)}/${name}`;

/** @throws KubeError */
export async function readLease(client: KubeClient, id: LeaseIdentity, signal: AbortSignal): Promise<LeaseObject> {
  return lease.parse(await client.get(pathOf(id), { signal }));
}

/**
 * Creates the Lease, owned by the node. Without `renewTime` it counts as never renewed.
 * @throws KubeError
 */
export async function createLease(
  client: KubeClient,
  id: LeaseIdentity,
  node: NodeIdentity,
  renewTime: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, holder, duration } = id;
  const object = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace, name, ownerReferences: [ownedBy(node)] },
    spec: { holderIdentity: holder, leaseDurationSeconds: duration, ...(renewTime === undefined ? {} : { renewTime }) },
  };
  await client.create(collection(namespace), object, { signal });
}

/** Changes fields of the Lease (merge patch). @throws KubeError */
export async function patchLease(
  client: KubeClient,
  id: LeaseIdentity,
  patch: object,
  signal: AbortSignal,
): Promise<LeaseObject> {
  return lease.parse(await client.patch(pathOf(id), 'application/merge-patch+json', patch, { signal }));
}

/**
 * Makes renewTimes: RFC 3339 with microseconds, each later than the one before even if the clock was set back, because
 * observers go by the change and not by the time.
 */
export function createRenewTimes(wallClock: () => number) {
  let last = 0;
  return {
    /** Counts from a renewal that was read, so that a restarted process goes on after it. */
    seen(renewTime: string | null | undefined): void {
      const millis = Date.parse(renewTime ?? '');
      if (Number.isFinite(millis)) last = Math.max(last, millis * 1000 + 999);
    },
    next(): string {
      last = Math.max(wallClock() * 1000, last + 1);
      const millis = Math.floor(last / 1000);
      const micros = String(last % 1000).padStart(3, '0');
      return `${new Date(millis).toISOString().slice(0, -1)}${micros}Z`;
    },
  };
}
