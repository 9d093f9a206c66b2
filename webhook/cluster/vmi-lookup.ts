import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { type VirtualMachineInstance, virtualMachineInstance } from '../../kube/resources.ts';
import { issuesText } from '../../model/admission/answer.ts';
import type { VmiReference } from '../../model/launcher/recognize.ts';
import { VMI_PATH } from './vmi-cache.ts';

/** What came of looking for a launcher's VMI. Each has one documented outcome: see decide. */
export type VmiLookup =
  | { readonly kind: 'found'; readonly vmi: VirtualMachineInstance }
  /** No VMI of that name: the pod's owner is gone, so the pod will be collected. */
  | { readonly kind: 'absent' }
  /** A VMI of that name with another uid: it was re-created, and the pod belongs to its predecessor. */
  | { readonly kind: 'replaced'; readonly uid: string }
  | { readonly kind: 'unreadable'; readonly why: string };

/**
 * @param fits whether a copy can be the state that the launcher was rendered from
 */
export type LookUpVmi = (
  namespace: string,
  reference: VmiReference,
  fits: (vmi: VirtualMachineInstance) => boolean,
) => Promise<VmiLookup>;

export interface VmiLookupOptions {
  readonly client: KubeClient;
  /** Seconds. */
  readonly timeout: number;
  /** The watched copy. */
  readonly find: (namespace: string, name: string) => VirtualMachineInstance | undefined;
}

/**
 * Finds VMIs in the watched copy, and asks the API server where that has none of the uid or one that does not fit the
 * launcher: the copy may be a moment late, and a launcher must not be judged by the state before.
 */
export function createVmiLookup({ client, timeout, find }: VmiLookupOptions): LookUpVmi {
  return async (namespace, { name, uid }, fits) => {
    const known = find(namespace, name);
    if (known?.metadata.uid === uid && fits(known)) return { kind: 'found', vmi: known };
    let object: unknown;
    try {
      const path = `${VMI_PATH}/namespaces/${encodeURIComponent(namespace)}/virtualmachineinstances/${encodeURIComponent(name)}`;
      object = await client.get(path, { timeout });
    } catch (error) {
      return isNotFound(error) ? { kind: 'absent' } : { kind: 'unreadable', why: (error as Error).message };
    }
    const result = virtualMachineInstance.safeParse(object);
    if (!result.success) return { kind: 'unreadable', why: `its shape is unexpected: ${issuesText(result.error)}` };
    const found = result.data.metadata.uid ?? '';
    return found === uid ? { kind: 'found', vmi: result.data } : { kind: 'replaced', uid: found };
  };
}
