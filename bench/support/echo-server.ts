import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { givenCertificate, listenAndTell } from './serving.ts';

/**
 * What an HTTP server costs that does nothing with what it gets: reads the body, parses it as JSON, and sends it back.
 * A program of its own, so that both sides of a comparison are a process each.
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
