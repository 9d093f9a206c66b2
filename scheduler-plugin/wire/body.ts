import type { IncomingMessage } from 'node:http';
import { ArgsError } from './args-error.ts';
import type { BufferPool, Lent } from './buffer-pool.ts';

/** Largest body in bytes: a pod of 3 MiB and 15,000 node names of 63 characters. */
export const LARGEST_BODY = 5 * 1024 * 1024;

export class BodyTooLarge extends ArgsError {
  constructor() {
    super(`the body is larger than ${LARGEST_BODY} bytes`);
  }
}

/**
 * Reads a request's body into a buffer of the pool.
 * @throws BodyTooLarge, the rest then passes by unread; ArgsError if the body ends early
 */
export function readBody(request: IncomingMessage, pool: BufferPool): Promise<Lent> {
  const announced = Number(request.headers['content-length'] ?? 0);
  return new Promise((resolve, reject) => {
    let buffer = pool.take(Math.min(announced, LARGEST_BODY));
    let size = 0;
    const release = () => pool.give(buffer);
    const settle = (act: () => void) => {
      request.off('data', onData).off('end', onEnd).off('error', onError);
      act();
    };
    const fail = (error: ArgsError) =>
      settle(() => {
        release();
        // A caller that still sends would not read the answer.
        request.resume();
        reject(error);
      });
    const grow = (least: number) => {
      const larger = pool.take(Math.min(LARGEST_BODY, least * 2));
      buffer.copy(larger, 0, 0, size);
      release();
      buffer = larger;
    };
    const onData = (chunk: Buffer) => {
      const least = size + chunk.length;
      if (least > LARGEST_BODY) {
        fail(new BodyTooLarge());
        return;
      }
      if (least > buffer.length) grow(least);
      size += chunk.copy(buffer, size);
    };
    const onEnd = () => settle(() => resolve({ bytes: buffer.subarray(0, size), release }));
    const onError = (cause: Error) => fail(new ArgsError('the body ended early', { cause }));
    request.on('data', onData).on('end', onEnd).on('error', onError);
  });
}
