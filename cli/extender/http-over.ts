import { type IncomingMessage, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { readText } from '../../kube/calls.ts';

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/**
 * One GET over an existing connection, which is closed afterwards.
 * @throws Error if the connection fails; KubeError `TooLarge`
 */
export async function getOver(stream: Duplex, path: string): Promise<Answer> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    // http waits forever for a stream that was destroyed before the request.
    const lost = () => reject(stream.errored ?? new Error('the connection was closed'));
    if (stream.destroyed) return lost();
    stream.once('error', lost).once('close', lost);
    const headers = { host: 'localhost', accept: 'application/json' };
    return request({ createConnection: () => stream, path, headers })
      .on('response', resolve)
      .on('error', reject)
      .end();
  });
  return { status: response.statusCode ?? 0, text: await readText(response) };
}
