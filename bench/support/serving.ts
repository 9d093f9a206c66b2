import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const CERTIFICATE = 'PLUMBLINE_BENCH_TLS';

/** A certificate and its key, PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Environment variables that pass a certificate to a measured program. */
export const serving = (certificate: Certificate): Record<string, string> => ({
  [CERTIFICATE]: JSON.stringify(certificate),
});

/** The certificate that was passed to this program; undefined: it serves plain HTTP. */
export function givenCertificate(): Certificate | undefined {
  const text = process.env[CERTIFICATE];
  return text === undefined ? undefined : (JSON.parse(text) as Certificate);
}

/** Listens on a free loopback port and prints it as a line of JSON. */
export function listenAndTell(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`${JSON.stringify({ port })}\n`);
  });
}
