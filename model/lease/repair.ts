import { DPU_LEASE_HOLDER } from '../names.ts';
import type { OwnerReference } from '../shapes.ts';

export interface LeaseShape {
  readonly metadata: {
    readonly ownerReferences?: readonly OwnerReference[] | null | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
  readonly spec?:
    | {
        readonly holderIdentity?: string | null | undefined;
        readonly leaseDurationSeconds?: number | null | undefined;
      }
    | null
    | undefined;
}

/** Not renewTime: only the DPU renews. */
interface LeaseForm {
  readonly ownerReferences: readonly [OwnerReference];
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
}

export type LeaseFault = 'no-owner' | 'foreign-owner' | 'owner-fields' | 'holder' | 'duration';

export type LeaseRepair =
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
  const form = leaseForm(subject);
  if (lease === undefined) return { kind: 'create', form };
  const faults = faultsOf(lease, form);
  return faults.length === 0 ? { kind: 'none' } : { kind: 'repair', form, faults };
}

/** The form of the lease for a node's DPU. */
function leaseForm({ nodeName, nodeUid, duration }: LeaseSubject): LeaseForm {
  const owner: OwnerReference = {
    apiVersion: 'v1',
    kind: 'Node',
    name: nodeName,
    uid: nodeUid,
    controller: true,
    blockOwnerDeletion: false,
  };
  return { ownerReferences: [owner], holderIdentity: DPU_LEASE_HOLDER, leaseDurationSeconds: duration };
}

function faultsOf(lease: LeaseShape, form: LeaseForm): LeaseFault[] {
  const faults: LeaseFault[] = [];
  const owners = lease.metadata.ownerReferences ?? [];
  const [desiredOwner] = form.ownerReferences;
  const currentOwner = owners.find(({ uid }) => uid === desiredOwner.uid);
  if (owners.length === 0) faults.push('no-owner');
  else if (currentOwner === undefined || owners.length > 1) faults.push('foreign-owner');
  if (currentOwner !== undefined && !sameOwner(currentOwner, desiredOwner)) faults.push('owner-fields');
  if (lease.spec?.holderIdentity !== form.holderIdentity) faults.push('holder');
  if (lease.spec?.leaseDurationSeconds !== form.leaseDurationSeconds) faults.push('duration');
  return faults;
}

/** The API omits booleans that are false. */
function sameOwner(a: OwnerReference, b: OwnerReference): boolean {
  return (
    a.apiVersion === b.apiVersion &&
    a.kind === b.kind &&
    a.name === b.name &&
    Boolean(a.controller) === Boolean(b.controller) &&
    Boolean(a.blockOwnerDeletion) === Boolean(b.blockOwnerDeletion)
  );
}

/** Of a DPU whose host has the health check off; only the host writes it. client-go releases elections the same way. */
export const RELEASED_HOLDER = '';

/** Whether the host of a DPU has released its Lease, so that missing renewals have no meaning. */
export function isReleased(spec: { readonly holderIdentity?: string | null | undefined } | null | undefined): boolean {
  return spec?.holderIdentity === RELEASED_HOLDER;
}
