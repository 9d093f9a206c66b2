import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const CERTIFICATE = 'PLUMBLINE_BENCH_TLS';

/** As PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** The environment by which a program under measurement is given its certificate. */
export const serving = (certificate: Certificate): Record<string, string> => ({
  [CERTIFICATE]: JSON.stringify(certificate),
});

/** The certificate that this program was given; undefined: it serves plain HTTP. */
export function givenCertificate(): Certificate | undefined {
  const text = process.env[CERTIFICATE];
  return text === undefined ? undefined : (JSON.parse(text) as Certificate);
}

/** Listens on a free port of the loopback, and prints it as a line of JSON. */
export function listenAndTell(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`${JSON.stringify({ port })}\n`);
  });
}
