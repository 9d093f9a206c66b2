import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';

/**
 * What an HTTP server costs that does nothing with what it gets: reads the body, parses it as JSON, and sends it back.
 * A program of its own, so that both sides of a comparison are a process each. PLUMBLINE_BENCH_TLS holds certificate
 * and key as JSON; without it, plain HTTP. Prints its port.
 */
const tls = process.env['PLUMBLINE_BENCH_TLS'];

const handler: Parameters<typeof createServer>[1] = (request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const text = JSON.stringify(JSON.parse(Buffer.concat(chunks).toString()));
    response.setHeader('content-type', 'application/json');
    response.setHeader('content-length', Buffer.byteLength(text));
    response.end(text);
  });
};
const server = tls === undefined ? createServer(handler) : createTlsServer(JSON.parse(tls) as object, handler);
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0 })}\n`);
});
