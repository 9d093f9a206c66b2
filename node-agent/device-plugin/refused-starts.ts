import type { RefusedStart } from '../../kube/node-topology.ts';
import { MAX_REFUSAL_MESSAGE, MAX_REFUSALS } from '../../kube/node-topology.ts';
import type { DeviceHolder } from './holder.ts';

/**
 * Containers that were kept from starting, for the report: the extender takes a refusal from there and from nowhere else,
 * since what a container's status says can be written by whoever names its image.
 */
export interface RefusedStarts {
  add(holder: DeviceHolder, podUID: string | undefined, message: string): void;
  /** Those that still count, oldest first. */
  current(): readonly RefusedStart[];
  /** @returns a function that ends the subscription */
  subscribe(listener: () => void): () => void;
}

/** Seconds after which a refusal that was not repeated is forgotten: the kubelet retries every five minutes at the least. */
const LASTS = 600;

/** @param now monotonic seconds */
export function createRefusedStarts(now: () => number): RefusedStarts {
  const known = new Map<string, { readonly refusal: RefusedStart; readonly at: number }>();
  const listeners = new Set<() => void>();
  const sweep = (): void => {
    for (const [key, { at }] of known) if (now() - at > LASTS || known.size > MAX_REFUSALS) known.delete(key);
  };
  return {
    add({ namespace, podName, container }, podUID, message) {
      const key = `${namespace}/${podName}/${container}`;
      // At the end again: the oldest goes first.
      known.delete(key);
      const text = message.slice(0, MAX_REFUSAL_MESSAGE);
      const refusal = { ...(podUID !== undefined && { podUID }), namespace, podName, container, message: text };
      known.set(key, { refusal, at: now() });
      sweep();
      for (const listener of listeners) listener();
    },
    current() {
      sweep();
      return [...known.values()].map(({ refusal }) => refusal);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
