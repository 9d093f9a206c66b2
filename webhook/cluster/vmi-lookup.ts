import type { KubeClient, RequestOptions } from '../../kube/client.ts';
import { isNotFound, KubeError } from '../../kube/errors.ts';
import { type VirtualMachineInstance, virtualMachineInstance } from '../../kube/resources.ts';
import { issuesText } from '../../model/admission/answer.ts';
import type { VmiReference } from '../../model/launcher/recognize.ts';
import { underSignals } from '../../runtime/signals.ts';
import { sleep } from '../../runtime/time.ts';
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
  /** Seconds for all of it. */
  readonly timeout: number;
  /** Monotonic seconds. */
  readonly now: () => number;
  /** The watched copy. */
  readonly find: (namespace: string, name: string) => VirtualMachineInstance | undefined;
}

/** Seconds between two looks at the watched copy while the API server is asked, and before it is asked again. */
const LOOK = 0.05;
const AGAIN = 0.2;

/**
 * Finds VMIs in the watched copy, and asks the API server where that has none of the uid or one that does not fit the
 * launcher: the copy may be a moment late, and a launcher must not be judged by the state before. Whichever is there first
 * decides, as a launcher without a readable VMI is refused: an API server that is slow to answer may have sent the VMI by the
 * watch, and one that was away for a moment (a connection that broke, 429, 5xx) is asked again while there is time.
 */
export function createVmiLookup({ client, timeout, now, find }: VmiLookupOptions): LookUpVmi {
  return async (namespace, reference, fits) => {
    const { name, uid } = reference;
    const fitting = () => {
      const known = find(namespace, name);
      return known?.metadata.uid === uid && fits(known) ? known : undefined;
    };
    const known = fitting();
    if (known !== undefined) return { kind: 'found', vmi: known };
    const deadline = now() + timeout;
    return underSignals([], undefined, async (signal) => {
      const arrived = (async (): Promise<VmiLookup> => {
        for (;;) {
          await sleep(LOOK, signal);
          const vmi = fitting();
          if (vmi !== undefined) return { kind: 'found', vmi };
        }
      })();
      const asked = (async (): Promise<VmiLookup> => {
        for (;;) {
          const { answer, again } = await ask(client, namespace, reference, { signal, timeout: deadline - now() });
          if (!again || deadline - now() <= AGAIN) return answer;
          await sleep(AGAIN, signal);
        }
      })();
      // The one that is not waited for ends with the signal.
      for (const one of [arrived, asked]) one.catch(() => undefined);
      return Promise.race([arrived, asked]);
    });
  };
}

/** Asks once. `again`: another answer may follow if it is asked again. */
async function ask(
  client: KubeClient,
  namespace: string,
  { name, uid }: VmiReference,
  options: RequestOptions,
): Promise<{ readonly answer: VmiLookup; readonly again: boolean }> {
  const path = `${VMI_PATH}/namespaces/${encodeURIComponent(namespace)}/virtualmachineinstances/${encodeURIComponent(name)}`;
  let object: unknown;
  try {
    object = await client.get(path, options);
  } catch (error) {
    if (isNotFound(error)) return { answer: { kind: 'absent' }, again: false };
    return { answer: { kind: 'unreadable', why: (error as Error).message }, again: isPassing(error) };
  }
  const result = virtualMachineInstance.safeParse(object);
  if (!result.success) {
    const why = `its shape is unexpected: ${issuesText(result.error)}`;
    return { answer: { kind: 'unreadable', why }, again: false };
  }
  const found = result.data.metadata.uid ?? '';
  if (found === uid) return { answer: { kind: 'found', vmi: result.data }, again: false };
  return { answer: { kind: 'replaced', uid: found }, again: false };
}

/** No answer, too many requests, or a fault of the server's own. */
function isPassing(error: unknown): boolean {
  return error instanceof KubeError && (error.status === 0 || error.status === 429 || error.status >= 500);
}
