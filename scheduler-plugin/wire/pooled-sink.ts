import type { BufferPool } from '../../runtime/buffer-pool.ts';
import type { BodySink } from '../../runtime/request-bodies.ts';

/** Collects a body in a buffer from the pool, which doubles as it fills. */
export function pooledSink(pool: BufferPool, largest: number): BodySink {
  let buffer: Buffer | undefined;
  let size = 0;
  const roomFor = (least: number): Buffer => {
    if (buffer !== undefined && buffer.length >= least) return buffer;
    const larger = pool.take(Math.min(largest, least * 2));
    if (buffer !== undefined) {
      buffer.copy(larger, 0, 0, size);
      pool.give(buffer);
    }
    buffer = larger;
    return larger;
  };
  const giveBack = () => {
    if (buffer !== undefined) pool.give(buffer);
    buffer = undefined;
  };
  return {
    write(chunk) {
      size += chunk.copy(roomFor(size + chunk.length), size);
    },
    finish: () => ({ bytes: roomFor(0).subarray(0, size), release: giveBack }),
    drop: giveBack,
  };
}
