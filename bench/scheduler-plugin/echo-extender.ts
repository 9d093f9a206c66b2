import { createServer } from 'node:https';

/**
 * The least that an extender can do: takes every node that it is offered. PLUMBLINE_BENCH_TLS holds certificate and key
 * as JSON. Prints its port.
 */
const tls = JSON.parse(process.env['PLUMBLINE_BENCH_TLS'] ?? '{}') as object;

const server = createServer(tls, (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { NodeNames } = JSON.parse(Buffer.concat(chunks).toString()) as { NodeNames: string[] };
    const answer = JSON.stringify({ NodeNames, FailedNodes: {}, Error: '' });
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
    response.end(answer);
  });
});
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0 })}\n`);
});
