import { createServer } from 'node:http';
import { listenAndTell } from '../support/serving.ts';

/** The smallest possible extender: it passes all nodes, and refuses them for pods of the namespace in its argument. */
const [, , refused] = process.argv;

interface Call {
  readonly Pod: { readonly metadata: { readonly namespace: string } };
  readonly NodeNames: readonly string[];
}

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const { Pod, NodeNames } = JSON.parse(Buffer.concat(chunks).toString()) as Call;
    const isRefused = refused !== undefined && Pod.metadata.namespace === refused;
    const reasons = Object.fromEntries(isRefused ? NodeNames.map((name) => [name, 'refused']) : []);
    const answer = JSON.stringify({
      NodeNames: isRefused ? [] : NodeNames,
      FailedAndUnresolvableNodes: reasons,
      Error: '',
    });
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
    response.end(answer);
  });
});
server.keepAliveTimeout = 120_000;
listenAndTell(server);
