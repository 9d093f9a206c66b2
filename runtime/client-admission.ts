import type { PeerCertificate, Server, TLSSocket } from 'node:tls';
import { quote } from '../model/errors.ts';
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

/**
 * Whether a client's certificate has one of the allowed names. The issuing CA alone proves too little: the CA of a
 * cluster issues certificates to every kubelet and to every user with an approved signing request.
 *
 * @param allowed common names, or DNS names and URIs among the alternative names
 */
export function hasAllowedName(certificate: PeerCertificate, allowed: ReadonlySet<string>): boolean {
  const { CN } = certificate.subject ?? {};
  const names = [...(Array.isArray(CN) ? CN : [CN]), ...alternativeNames(certificate.subjectaltname)];
  return names.some((name) => name !== undefined && allowed.has(name));
}

/** Only plain entries: Node.js quotes a name that holds a comma, and no allowed name has one. */
function alternativeNames(text = ''): string[] {
  if (text.includes('"')) return [];
  return text.split(', ').flatMap((entry) => {
    const [kind = '', ...name] = entry.split(':');
    return kind === 'DNS' || kind === 'URI' ? [name.join(':')] : [];
  });
}

/** Parses `a, b` into a set; empty text is an empty set. */
export function parseNames(text: string): ReadonlySet<string> {
  return new Set(
    text
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  );
}
