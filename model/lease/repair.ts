import { DPU_LEASE_HOLDER } from '../names.ts';

/** What is read of a Lease to see whether it is in order. */
export interface LeaseShape {
  readonly metadata: { readonly ownerReferences?: readonly LeaseOwner[] | null | undefined };
  readonly spec?:
    | {
        readonly holderIdentity?: string | null | undefined;
        readonly leaseDurationSeconds?: number | null | undefined;
      }
    | null
    | undefined;
}

export interface LeaseOwner {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean | undefined;
  readonly blockOwnerDeletion?: boolean | undefined;
}

/** The parts of a DPU's lease that the host keeps in order. renewTime is none of them: only the DPU may renew. */
export interface LeaseForm {
  readonly ownerReferences: readonly [LeaseOwner];
  readonly holderIdentity: string;
  readonly leaseDurationSeconds: number;
}

export type LeaseFault = 'no-owner' | 'foreign-owner' | 'owner-fields' | 'holder' | 'duration';

export type LeaseRepair =
  | { readonly kind: 'none' }
  /** There is none: to be created in this form, without a renewTime. */
  | { readonly kind: 'create'; readonly form: LeaseForm }
  /** To be given this form, its renewTime untouched. */
  | { readonly kind: 'repair'; readonly form: LeaseForm; readonly faults: readonly LeaseFault[] };

export interface LeaseSubject {
  readonly nodeName: string;
  /** The Node object's current uid: a node created again under its name has another. */
  readonly nodeUid: string;
  /** Whole seconds. */
  readonly duration: number;
}

/**
 * What the host must do to the lease of its DPU: see that it exists, is owned by this very Node object and by nothing
 * else (so that it goes when the node goes, and does not hold the node's deletion up), and bears the DPU as holder.
 */
export function repairLease(lease: LeaseShape | undefined, subject: LeaseSubject): LeaseRepair {
  const form = leaseForm(subject);
  if (lease === undefined) return { kind: 'create', form };
  const faults = faultsOf(lease, form);
  return faults.length === 0 ? { kind: 'none' } : { kind: 'repair', form, faults };
}

/** The form of a node's DPU lease. */
export function leaseForm({ nodeName, nodeUid, duration }: LeaseSubject): LeaseForm {
  const owner: LeaseOwner = {
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
  const [wanted] = form.ownerReferences;
  const own = owners.find(({ uid }) => uid === wanted.uid);
  if (owners.length === 0) faults.push('no-owner');
  else if (own === undefined || owners.length > 1) faults.push('foreign-owner');
  if (own !== undefined && !sameOwner(own, wanted)) faults.push('owner-fields');
  if (lease.spec?.holderIdentity !== form.holderIdentity) faults.push('holder');
  if (lease.spec?.leaseDurationSeconds !== form.leaseDurationSeconds) faults.push('duration');
  return faults;
}

/** The API leaves out booleans that are false. */
function sameOwner(a: LeaseOwner, b: LeaseOwner): boolean {
  return (
    a.apiVersion === b.apiVersion &&
    a.kind === b.kind &&
    a.name === b.name &&
    Boolean(a.controller) === Boolean(b.controller) &&
    Boolean(a.blockOwnerDeletion) === Boolean(b.blockOwnerDeletion)
  );
}
