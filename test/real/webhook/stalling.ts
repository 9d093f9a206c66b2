import { createServer, request as send } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import type { ControlPlane } from '../control-plane.ts';
import type { Server } from './installed.ts';

/** The API server, except that some requests are never answered. */
export async function stallingServer(plane: ControlPlane, stalls: RegExp): Promise<Server> {
  const authority = createCertificateAuthority('stalling');
  const server = createServer(authority.issue(['127.0.0.1']), (request, response) => {
    const { method, url = '', headers } = request;
    if (stalls.test(`${method} ${url}`)) return;
    const onwards = send(new URL(url, plane.url), { method, headers, ca: plane.ca }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    onwards.on('error', () => response.destroy());
    response.on('close', () => onwards.destroy());
    request.pipe(onwards);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ca: authority.cert,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
