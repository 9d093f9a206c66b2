import { createPrivateKey, X509Certificate } from 'node:crypto';
import { unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { PeerCertificate, SecureContextOptions, Server, TLSSocket } from 'node:tls';
import { PlumblineError, quote } from '../model/errors.ts';
import type { Logger } from './log.ts';

/** By common name, DNS name or URI: a cluster's CA issues certificates to every kubelet and to users, too. */
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
export const parseNames = (text: string): ReadonlySet<string> =>
  new Set(text.split(',').flatMap((name) => name.trim() || []));

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** If set, clients must present a certificate of this CA. */
  readonly clientCaFile?: string | undefined;
  /** Names of which a client's certificate must have one. If empty or absent, any certificate of the CA is accepted. */
  readonly clientNames?: ReadonlySet<string> | undefined;
}

class CertificateError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('certificate', message, options);
  }
}

/** @throws CertificateError if a file cannot be read or parsed, or the key does not match the certificate */
export async function loadCertificate(files: CertificateFiles): Promise<SecureContextOptions> {
  const { certFile, keyFile, clientCaFile } = files;
  try {
    const [cert, key, ca] = await Promise.all([
      readFile(certFile),
      readFile(keyFile),
      clientCaFile && readFile(clientCaFile),
    ]);
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
      throw new CertificateError(`${keyFile} is not the key of ${certFile}; replace both files`);
    }
    return { cert, key, ...(ca && { ca }) };
  } catch (error) {
    if (error instanceof CertificateError) throw error;
    throw new CertificateError(`cannot use the serving certificate: ${(error as Error).message}`, { cause: error });
  }
}

/** The certificates of a PEM bundle; empty if one is malformed. */
export function certificatesOf(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block));
  } catch {
    return [];
  }
}

const textOf = ({ cert, ca }: SecureContextOptions) => `${cert}${ca ?? ''}`;

const CHECK_INTERVAL_MILLISECONDS = 1000;
/** Milliseconds between two readings without a change: the reading after a change may have failed. */
const READ_INTERVAL_MILLISECONDS = 60_000;

/**
 * The certificate that a server presents: the newest pair of its files that fits together. Owner: who writes the files.
 * Age: they are checked every second, and read once a minute. End: `stop`.
 *
 * It checks the files instead of watching their directories: cert-manager's Secrets change by renaming a symbolic link,
 * and some file systems report no changes.
 */
export class ServingCertificate {
  readonly files: CertificateFiles;
  readonly #log: Logger;
  #loaded = '';
  #reloadIfChanged: () => void = () => undefined;
  #reloading = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(files: CertificateFiles, log: Logger) {
    this.files = files;
    this.#log = log;
  }

  /** @throws CertificateError */
  async load(): Promise<SecureContextOptions> {
    const context = await loadCertificate(this.files);
    this.#loaded = textOf(context);
    this.#logValidity(context);
    return context;
  }

  /** @param onChange takes each new pair */
  watch(onChange: (context: SecureContextOptions) => Promise<void>): void {
    // One after the other: all files change at once.
    this.#reloadIfChanged = () => {
      this.#reloading = this.#reloading.then(() => this.#reload(onChange));
    };
    const options = { interval: CHECK_INTERVAL_MILLISECONDS, persistent: false };
    for (const path of this.#paths) watchFile(path, options, this.#reloadIfChanged);
    this.#timer = setInterval(this.#reloadIfChanged, READ_INTERVAL_MILLISECONDS).unref();
    // For a change between `load` and here.
    this.#reloadIfChanged();
  }

  stop(): void {
    clearInterval(this.#timer);
    for (const path of this.#paths) unwatchFile(path, this.#reloadIfChanged);
  }

  get #paths(): string[] {
    const { certFile, keyFile, clientCaFile } = this.files;
    return [certFile, keyFile, ...(clientCaFile === undefined ? [] : [clientCaFile])];
  }

  /** Never rejects. */
  async #reload(onChange: (context: SecureContextOptions) => Promise<void>): Promise<void> {
    try {
      const context = await loadCertificate(this.files);
      if (textOf(context) === this.#loaded) return;
      await onChange(context);
      this.#loaded = textOf(context);
      this.#logValidity(context);
    } catch (err) {
      this.#log.warn({ err }, 'reading the new certificate failed; keeping the old one');
    }
  }

  /** Such a certificate is presented nevertheless: the clock of this node may be the one that is wrong. */
  #logValidity({ cert }: SecureContextOptions): void {
    const { validFrom, validTo } = new X509Certificate(String(cert));
    const now = Date.now();
    if (Date.parse(validFrom) <= now && now < Date.parse(validTo)) return;
    const { certFile } = this.files;
    this.#log.error({ certFile, validFrom, validTo }, 'the serving certificate is expired or not valid yet');
  }
}

/** Seconds since 1970: of the server's certificate in use, of the CA next to it, of the last caller's. */
export type Expiries = ReadonlyMap<Certificate, number>;
type Certificate = 'serving' | 'authority' | 'client';

/** Seconds since 1970. @param validTo as OpenSSL prints it */
const endOf = (validTo: string) => Date.parse(validTo) / 1000;

/** Reads when a serving certificate expires, and its CA where a file of it exists. @returns seconds since 1970 */
export async function readExpiries(cert: string | Buffer, { certFile, clientCaFile }: CertificateFiles) {
  const expiries = new Map<Certificate, number>([['serving', endOf(new X509Certificate(cert).validTo)]]);
  const authority = await readFile(clientCaFile ?? join(dirname(certFile), 'ca.crt'), 'utf8').catch(() => '');
  const ends = certificatesOf(authority).map(({ validTo }) => endOf(validTo));
  // While a bundle holds an old CA and a new one, the later expiry counts.
  if (ends.length > 0) expiries.set('authority', Math.max(...ends));
  return expiries;
}

const LOG_INTERVAL_MILLISECONDS = 10_000;

/** Takes the time in seconds since 1970 when a client's certificate expires. */
type OnKnown = (expiry: number) => void;

/** Closes connections of clients with none of the names (empty: any of the CA), before they send a request. */
export function admitClients(tls: Server, names: ReadonlySet<string>, onKnown: OnKnown, log: Logger): void {
  let logged = Number.NEGATIVE_INFINITY;
  const close = (socket: TLSSocket) => {
    const client = quote(String(socket.getPeerCertificate().subject?.CN ?? ''));
    socket.destroy();
    if (performance.now() - logged < LOG_INTERVAL_MILLISECONDS) return;
    logged = performance.now();
    log.warn({ client, allowed: [...names] }, 'connection closed: no allowed name in the client certificate');
  };
  tls.prependListener('secureConnection', (socket: TLSSocket) => {
    const certificate = socket.getPeerCertificate();
    if (names.size > 0 && !hasAllowedName(certificate, names)) close(socket);
    else onKnown(endOf(certificate.valid_to));
  });
}
