/** Bytes in a buffer that goes back to its owner after use. */
export interface Lent {
  /** Valid until `release`. */
  readonly bytes: Buffer;
  /** Returns the buffer to its owner. Call it once at most. */
  release(): void;
}

/** Wraps bytes that no pool owns; `release` does nothing. */
export function lentFree(bytes: Buffer): Lent {
  return { bytes, release: () => undefined };
}

/**
 * Buffers that are reused. A call moves hundreds of kilobytes. Allocated for each call, they would be memory outside
 * the heap, for which V8 collects garbage many times a second.
 */
export interface BufferPool {
  /** @param size in bytes; the buffer may be longer, and its content is undefined */
  take(size: number): Buffer;
  /** Returns a buffer. A buffer that is never returned is garbage-collected like any other. */
  give(buffer: Buffer): void;
}

/**
 * Size in bytes of the smallest buffer, and the number of idle buffers kept: the scheduler sends one request at a time.
 */
const SMALLEST = 256 * 1024;
const KEPT = 4;

/** An empty pool. It allocates on demand and keeps the last few buffers that were returned. */
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
      // Drops the oldest, so that a burst of large calls does not keep memory.
      if (idle.length > KEPT) idle.shift();
    },
  };
}
