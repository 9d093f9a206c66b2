import type { PeerCertificate, Server, TLSSocket } from 'node:tls';
import { quote } from '../model/errors.ts';
import { hasAllowedName } from './client-names.ts';
import type { Logger } from './log.ts';

/** Milliseconds between two log lines about clients whose connections were closed. */
const LOG_INTERVAL = 10_000;

/**
 * Closes connections of clients whose certificate has none of the names, before they send a request. The server refuses
 * clients without a valid certificate.
 *
 * @param names empty: any certificate of the CA
 * @param onKnown called with the certificate of each connection that may call
 */
export function admitClients(
  tls: Server,
  names: ReadonlySet<string>,
  onKnown: (certificate: PeerCertificate) => void,
  log: Logger,
): void {
  let logged = Number.NEGATIVE_INFINITY;
  const close = (socket: TLSSocket) => {
    const client = quote(String(socket.getPeerCertificate().subject?.CN ?? ''));
    socket.destroy();
    if (performance.now() - logged < LOG_INTERVAL) return;
    logged = performance.now();
    log.warn({ client, allowed: [...names] }, 'connection closed: no allowed name in the client certificate');
  };
  tls.prependListener('secureConnection', (socket: TLSSocket) => {
    const certificate = socket.getPeerCertificate();
    if (names.size > 0 && !hasAllowedName(certificate, names)) close(socket);
    else onKnown(certificate);
  });
}
