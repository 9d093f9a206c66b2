/**
 * The holder of a DPU's Lease that must not be renewed: its host runs with the health check off. A DPU cannot write it, since
 * the holder is the host's; client-go releases a lease of an election by the same value.
 */
export const RELEASED_HOLDER = '';

/** Whether the host of a DPU has let its Lease go, so that silence on it means nothing. */
export function isReleased(spec: { readonly holderIdentity?: string | null | undefined } | null | undefined): boolean {
  return spec?.holderIdentity === RELEASED_HOLDER;
}
