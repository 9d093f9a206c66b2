import type { IncomingMessage } from 'node:http';
import { ReviewError } from './admission-review.ts';

/**
 * Largest body in bytes. The API server takes objects of up to 3 MiB and a review of an update carries two of them.
 */
export const LARGEST_BODY = 7 * 1024 * 1024;

/**
 * Reads a request's body.
 * @throws ReviewError (413) if it is larger than LARGEST_BODY, (400) if it ends early
 */
export function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    // The rest of a body that is too large is let pass by: a client that still sends would not read the answer.
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= LARGEST_BODY) chunks.push(chunk);
      else reject(new ReviewError(413, `the body is larger than ${LARGEST_BODY} bytes`));
    });
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    request.on('error', (cause) => reject(new ReviewError(400, 'the body ended early', { cause })));
  });
}
