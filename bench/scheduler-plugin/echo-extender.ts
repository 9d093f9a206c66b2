import { createServer } from 'node:http';
import { listenAndTell } from '../support/serving.ts';

/** The smallest possible extender: it passes all nodes. */
const server = createServer((request, response) => {
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
listenAndTell(server);
