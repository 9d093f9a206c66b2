import { createServer } from 'node:http';

type Args = Readonly<Record<string, unknown>> & { readonly NodeNames?: readonly string[] };

/** An extender whose answers the test sets, to see the effect on the real scheduler. */
export interface AnsweringExtender {
  readonly url: string;
  /** Calls so far, oldest first. */
  readonly calls: { readonly verb: string; readonly args: Args }[];
  stop(): Promise<void>;
}

export async function startAnsweringExtender(answer: (verb: string, args: Args) => object): Promise<AnsweringExtender> {
  const calls: { verb: string; args: Args }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const verb = request.url?.slice(1) ?? '';
    const args = JSON.parse(Buffer.concat(chunks).toString()) as Args;
    calls.push({ verb, args });
    const body = JSON.stringify(answer(verb, args));
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
      .end(body);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    calls,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
