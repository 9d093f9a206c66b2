/** Bytes in a buffer that its owner may want back. */
export interface Lent {
  /** Good until `release`. */
  readonly bytes: Buffer;
  /** Gives the buffer back; to be called at most once. */
  release(): void;
}

/** Bytes without an owner that wants them back. */
export function lentFree(bytes: Buffer): Lent {
  return { bytes, release: () => undefined };
}

/**
 * Buffers that are used again. A call moves hundreds of kilobytes; allocated each time they would be memory outside of
 * the heap, which V8 knows of only as a reason to collect garbage, many times a second.
 */
export interface BufferPool {
  /** @param size in bytes; what is given may be longer, and holds whatever it held before */
  take(size: number): Buffer;
  /** The buffer is no longer used. One that is never given back is collected like any other. */
  give(buffer: Buffer): void;
}

/** Bytes of the smallest, and how many idle ones are kept: the scheduler asks one question at a time. */
const SMALLEST = 256 * 1024;
const KEPT = 4;

export function createBufferPool(): BufferPool {
  const idle: Buffer[] = [];
  return {
    take(size) {
      const at = idle.findIndex((buffer) => buffer.length >= size);
      if (at >= 0) return idle.splice(at, 1)[0]!;
      return Buffer.allocUnsafeSlow(Math.max(SMALLEST, size));
    },
    give(buffer) {
      idle.push(buffer);
      // The oldest goes, so that a crowd of large calls leaves nothing behind.
      if (idle.length > KEPT) idle.shift();
    },
  };
}
