import type { KubeClient } from '../kube/client.ts';
import { isNotFound } from '../kube/errors.ts';
import { type VirtualMachineInstance, virtualMachineInstance } from '../kube/resources.ts';
import type { VmiReference } from '../model/launcher/recognize.ts';
import { issuesText } from './admission-review.ts';

/** What came of looking for a launcher's VMI. Each has one documented outcome in review-pod.ts. */
export type VmiLookup =
  | { readonly kind: 'found'; readonly vmi: VirtualMachineInstance }
  /** No VMI of that name: the pod's owner is gone, so the pod will be collected. */
  | { readonly kind: 'absent' }
  /** A VMI of that name with another uid: it was re-created, and the pod belongs to its predecessor. */
  | { readonly kind: 'replaced'; readonly uid: string }
  | { readonly kind: 'unreadable'; readonly why: string };

export type LookUpVmi = (namespace: string, reference: VmiReference) => Promise<VmiLookup>;

/**
 * Reads VMIs from the API server, each time anew: a launcher is rendered from the VMI as it is now, and a copy that is
 * a second late would decide on the one before.
 *
 * @param timeout seconds
 */
export function createVmiLookup(client: KubeClient, timeout: number): LookUpVmi {
  return async (namespace, { name, uid }) => {
    let object: unknown;
    try {
      object = await client.get(
        `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstances/${encodeURIComponent(name)}`,
        { timeout },
      );
    } catch (error) {
      return isNotFound(error) ? { kind: 'absent' } : { kind: 'unreadable', why: (error as Error).message };
    }
    const result = virtualMachineInstance.safeParse(object);
    if (!result.success) return { kind: 'unreadable', why: `its shape is unexpected: ${issuesText(result.error)}` };
    const found = result.data.metadata.uid ?? '';
    return found === uid ? { kind: 'found', vmi: result.data } : { kind: 'replaced', uid: found };
  };
}
