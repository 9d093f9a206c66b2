import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { givenCertificate, listenAndTell } from './serving.ts';

/**
 * The base cost of an HTTP server that does no work: it reads the body, parses it as JSON, and sends it back. A
 * separate program, so that each side of a comparison is one process.
 */
const tls = givenCertificate();

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
listenAndTell(tls === undefined ? createServer(handler) : createTlsServer({ ...tls }, handler));
