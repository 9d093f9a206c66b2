import type { Socket } from 'node:net';
import type { PeerCertificate, Server, TLSSocket } from 'node:tls';
import { quote } from '../model/errors.ts';
import { hasAllowedName } from './client-names.ts';
import type { Logger } from './log.ts';

/** Milliseconds between two log lines about clients whose connections were closed. */
const LOG_INTERVAL = 10_000;

/**
 * Closes connections of clients whose certificate is not valid or has none of the names, before they send a request.
 * Clients without a certificate stay connected where the server accepts them, but do not count as known.
 *
 * @param names empty: any certificate of the CA
 * @param onKnown called with the certificate of each connection that may call
 * @returns whether the client of a connection has shown a certificate that may call
 */
export function admitClients(
  tls: Server,
  names: ReadonlySet<string>,
  onKnown: (certificate: PeerCertificate) => void,
  log: Logger,
): (socket: Socket) => boolean {
  const known = new WeakSet<Socket>();
  let logged = Number.NEGATIVE_INFINITY;
  const close = (socket: TLSSocket, reason: string) => {
    const client = quote(String(socket.getPeerCertificate().subject?.CN ?? ''));
    socket.destroy();
    if (performance.now() - logged < LOG_INTERVAL) return;
    logged = performance.now();
    log.warn({ client, reason, allowed: [...names] }, 'connection closed: client certificate not allowed');
  };
  tls.prependListener('secureConnection', (socket: TLSSocket) => {
    const certificate = socket.getPeerCertificate();
    if (!socket.authorized) {
      if (Object.keys(certificate ?? {}).length > 0) close(socket, String(socket.authorizationError));
      return;
    }
    if (names.size > 0 && !hasAllowedName(certificate, names))
      return close(socket, 'no allowed name in the certificate');
    known.add(socket);
    onKnown(certificate);
  });
  return (socket) => known.has(socket);
}
