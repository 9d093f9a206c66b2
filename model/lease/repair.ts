import { DPU_LEASE_HOLDER } from '../names.ts';
import type { Optional, OwnerReference } from '../shapes.ts';

export interface LeaseShape {
  readonly metadata: {
    readonly ownerReferences?: Optional<readonly OwnerReference[]>;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
  readonly spec?: Optional<{
    readonly holderIdentity?: Optional<string>;
    readonly leaseDurationSeconds?: Optional<number>;
  }>;
}

/** Not renewTime: only the DPU renews. */
interface LeaseForm {
  readonly ownerReferences: readonly [OwnerReference];
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
}

export type LeaseFault = 'no-owner' | 'foreign-owner' | 'owner-fields' | 'holder' | 'duration';

type LeaseRepair =
  | { readonly kind: 'none' }
  /** Without a renewTime. */
  | { readonly kind: 'create'; readonly form: LeaseForm }
  /** Keep its renewTime. */
  | { readonly kind: 'repair'; readonly form: LeaseForm; readonly faults: readonly LeaseFault[] };

export interface LeaseSubject {
  readonly nodeName: string;
  /** A node that is created again with the same name has a different one. */
  readonly nodeUid: string;
  /** In whole seconds. */
  readonly duration: number;
}

/**
 * The lease must exist, must have this Node object as its only owner (so that it is deleted with the node and does not
 * block the node's deletion), and must name the DPU as holder.
 */
export function repairLease(lease: LeaseShape | undefined, subject: LeaseSubject): LeaseRepair {
  const { nodeName: name, nodeUid: uid, duration } = subject;
  const owner = { apiVersion: 'v1', kind: 'Node', name, uid, controller: true, blockOwnerDeletion: false };
  const form: LeaseForm = {
    ownerReferences: [owner],
    holderIdentity: DPU_LEASE_HOLDER,
    leaseDurationSeconds: duration,
  };
  if (lease === undefined) return { kind: 'create', form };
  const owners = lease.metadata.ownerReferences ?? [];
  const present = owners.find((reference) => reference.uid === uid);
  const faults: LeaseFault[] = [];
  if (owners.length === 0) faults.push('no-owner');
  else if (present === undefined || owners.length > 1) faults.push('foreign-owner');
  if (present !== undefined && !sameOwner(present, owner)) faults.push('owner-fields');
  if (lease.spec?.holderIdentity !== form.holderIdentity) faults.push('holder');
  if (lease.spec?.leaseDurationSeconds !== form.leaseDurationSeconds) faults.push('duration');
  return faults.length === 0 ? { kind: 'none' } : { kind: 'repair', form, faults };
}

function sameOwner(a: OwnerReference, b: OwnerReference): boolean {
  // The API omits booleans that are false.
  return (['apiVersion', 'kind', 'name', 'controller', 'blockOwnerDeletion'] as const).every(
    (field) => (a[field] || false) === (b[field] || false),
  );
}

/** Of a DPU whose host has the health check off; only the host writes it. client-go releases elections the same way. */
export const RELEASED_HOLDER = '';

/** Whether the host of a DPU has released its Lease, so that missing renewals have no meaning. */
export function isReleased(spec: Optional<{ readonly holderIdentity?: Optional<string> }>): boolean {
  return spec?.holderIdentity === RELEASED_HOLDER;
}
