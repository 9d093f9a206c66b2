import type { AskedPod } from './asked-pod.ts';

/** Pods of the last calls. Each kube-scheduler asks about one pod at a time. */
const MOST = 16;
/** Bytes of a pod to remember; a usual one has 3 to 8 kB. */
const LONGEST = 32 * 1024;

interface Recent {
  readonly bytes: Buffer;
  readonly pod: AskedPod;
}

/**
 * The pods of the last calls by their bytes. kube-scheduler sends the same pod to `/filter` and then to `/prioritize`,
 * so every second pod is already parsed and checked. Callers must not change the pods.
 */
export class RecentPods {
  readonly #recent: Recent[] = [];
  #next = 0;

  /** @param bytes everything in the body before the names */
  find(bytes: Buffer): AskedPod | undefined {
    return this.#recent.find((one) => one.bytes.length === bytes.length && one.bytes.equals(bytes))?.pod;
  }

  /** Replaces the oldest one. It copies the bytes, since buffers of bodies are used again. */
  add(bytes: Buffer, pod: AskedPod): void {
    if (bytes.length > LONGEST) return;
    this.#recent[this.#next] = { bytes: Buffer.from(bytes), pod };
    this.#next = (this.#next + 1) % MOST;
  }
}
