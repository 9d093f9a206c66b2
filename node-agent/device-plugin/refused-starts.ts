import type { RefusedStart } from '../../kube/node-topology.ts';
import { MAX_REFUSAL_MESSAGE, MAX_REFUSALS } from '../../kube/node-topology.ts';
import type { DeviceHolder } from './holder.ts';

/**
 * Containers that the agent refused to start, for the report. The extender reads refusals only from there, since the
 * author of an image can forge a container's status.
 */
export type RefusedStarts = ReturnType<typeof createRefusedStarts>;

/** Seconds after which a refusal that was not repeated expires: the kubelet retries at least every five minutes. */
const LASTS = 600;

/** Creates an empty list. @param now monotonic seconds */
export function createRefusedStarts(now: () => number) {
  const known = new Map<string, { readonly refusal: RefusedStart; readonly at: number }>();
  const listeners = new Set<() => void>();
  const sweep = (): void => {
    for (const [key, { at }] of known) if (now() - at > LASTS || known.size > MAX_REFUSALS) known.delete(key);
  };
  return {
    add({ namespace, podName, container }: DeviceHolder, podUID: string | undefined, message: string) {
      const key = `${namespace}/${podName}/${container}`;
      // Inserts at the end again: the oldest is removed first.
      known.delete(key);
      const text = message.slice(0, MAX_REFUSAL_MESSAGE);
      const refusal = { ...(podUID !== undefined && { podUID }), namespace, podName, container, message: text };
      known.set(key, { refusal, at: now() });
      sweep();
      for (const listener of listeners) listener();
    },
    /** Refusals that still count, oldest first. */
    current(): readonly RefusedStart[] {
      sweep();
      return [...known.values()].map(({ refusal }) => refusal);
    },
    /** @returns a function that ends the subscription */
    subscribe(listener: () => void) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
