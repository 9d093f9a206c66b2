/**
 * The holder of a DPU's Lease that must not be renewed, because its host runs with the health check off. A DPU cannot
 * write it: the host owns that field. client-go uses the same value to release the Lease of an election.
 */
export const RELEASED_HOLDER = '';

/** Whether the host of a DPU has released its Lease, so that missing renewals have no meaning. */
export function isReleased(spec: { readonly holderIdentity?: string | null | undefined } | null | undefined): boolean {
  return spec?.holderIdentity === RELEASED_HOLDER;
}
