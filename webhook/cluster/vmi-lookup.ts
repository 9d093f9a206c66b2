import { isNotFound, type KubeClient, KubeError, type RequestOptions } from '../../kube/client.ts';
import { virtualMachineInstance } from '../../kube/virtual-machines.ts';
import type { OwnerFacts } from '../../model/admission/facts.ts';
import { issuesText } from '../../model/errors.ts';
import type { VmiReference } from '../../model/launcher/recognize.ts';
import type { VmiShape } from '../../model/shapes.ts';
import { sleep, underSignals } from '../../runtime/time.ts';
import { VMI_PATH } from './cluster-view.ts';

/** The result of the lookup of a launcher's VMI. Each has one documented outcome: see decide. */
export type VmiLookup =
  | { readonly kind: 'found'; readonly vmi: VmiShape }
  | Extract<OwnerFacts, { kind: 'absent' | 'replaced' | 'unreadable' }>;

export type LookUpVmi = ReturnType<typeof createVmiLookup>;

export interface VmiLookupOptions {
  readonly client: KubeClient;
  /** Seconds for the whole lookup. */
  readonly timeout: number;
  /** Monotonic seconds. */
  readonly now: () => number;
  /** Finds a VMI in the watched copy. */
  readonly find: (namespace: string, name: string) => VmiShape | undefined;
}

/** Seconds between two checks of the watched copy during a request, and before a request is retried. */
const LOOK = 0.05;
const AGAIN = 0.2;

/**
 * Finds VMIs in the watched copy. It also asks the API server if the copy has no VMI with the uid, or one that does not
 * match the launcher: the copy may be late, and the decision must not use an old state. The first result counts,
 * because a launcher without a readable VMI is refused: a slow API server may deliver the VMI through the watch first,
 * and a request that failed temporarily (a broken connection, 429, 5xx) is retried while there is time.
 */
export function createVmiLookup({ client, timeout, now, find }: VmiLookupOptions) {
  /** @param fits whether KubeVirt can have rendered the launcher from a copy of the VMI */
  return async (namespace: string, reference: VmiReference, fits: (vmi: VmiShape) => boolean): Promise<VmiLookup> => {
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
      // The signal ends the one that is slower.
      for (const one of [arrived, asked]) one.catch(() => undefined);
      return Promise.race([arrived, asked]);
    });
  };
}

/** Makes one request. `again`: a retry may succeed. */
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

/** Whether an error is temporary: no response, too many requests, or a server error. */
function isPassing(error: unknown): boolean {
  return error instanceof KubeError && (error.status === 0 || error.status === 429 || error.status >= 500);
}
