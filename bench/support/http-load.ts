import { Agent, type IncomingMessage, request } from 'node:http';
import { json } from 'node:stream/consumers';

/** A client that keeps its connections open. */
export function createClient({ port, path }: { readonly port: number; readonly path: string }) {
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });

  const send = (body: Buffer | string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const one = request({ host: '127.0.0.1', port, path, method: 'POST', agent, headers }, (response) => {
        if (response.statusCode === 200) return resolve(response);
        response.resume();
        reject(new Error(`${path} answered ${response.statusCode}`));
      });
      one.on('error', reject);
      one.end(body);
    });
  return {
    /** Milliseconds of one call. @throws if the response is not 200 */
    async time(body: Buffer): Promise<number> {
      const begun = performance.now();
      const response = await send(body);
      await new Promise<void>((resolve, reject) => void response.resume().on('end', resolve).on('error', reject));
      return performance.now() - begun;
    },
    /** One call; resolves with its answer. @throws if the response is not 200 or not JSON */
    ask: async (body: Buffer | string): Promise<unknown> => json(await send(body)),
    close: () => agent.destroy(),
  };
}
