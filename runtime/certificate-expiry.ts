import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type CertificateFiles, certificatesOf } from './certificate.ts';
import { Gauge, type Registry } from './metrics.ts';

/**
 * When certificates expire, in seconds since 1970:
 * - serving: the server's own certificate, as currently in use;
 * - authority: the CA in the same Secret, which callers trust;
 * - client: the certificate of the last known caller.
 */
export type Expiries = ReadonlyMap<Certificate, number>;
type Certificate = 'serving' | 'authority' | 'client';

/** Name of the CA's certificate in a Secret of cert-manager, next to tls.crt. */
const AUTHORITY = 'ca.crt';

/**
 * Reads when a serving certificate expires, and its CA where a file of it exists.
 *
 * @returns seconds since 1970
 */
export async function readExpiries(cert: string | Buffer, { certFile, clientCaFile }: CertificateFiles) {
  const expiries = new Map<Certificate, number>([['serving', endOf(new X509Certificate(cert).validTo)]]);
  const authority = await readFile(clientCaFile ?? join(dirname(certFile), AUTHORITY), 'utf8').catch(() => '');
  const ends = certificatesOf(authority).map(({ validTo }) => endOf(validTo));
  // While a bundle holds an old CA and a new one, the later expiry counts.
  if (ends.length > 0) expiries.set('authority', Math.max(...ends));
  return expiries;
}

/** @param validTo as OpenSSL prints it */
export const endOf = (validTo: string) => Date.parse(validTo) / 1000;

/** Registers the gauge of certificates' expiry; a certificate that the server does not have is absent from it. */
export function registerCertificateMetrics(registry: Registry, server: { readonly expiries: Expiries }): void {
  new Gauge({
    name: 'plumbline_certificate_expiry_timestamp_seconds',
    help: 'When a certificate expires (serving, its authority, the client that called last), in seconds since 1970',
    labelNames: ['certificate'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [certificate, end] of server.expiries) this.set({ certificate }, end);
    },
  });
}
