import { createPrivateKey, X509Certificate } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { SecureContextOptions } from 'node:tls';
import { PlumblineError } from '../model/errors.ts';
import type { Logger } from './log.ts';

export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** If set, clients must present a certificate of this CA. */
  readonly clientCaFile?: string | undefined;
  /** Names of which a client's certificate must have one. If empty or absent, any certificate of the CA is accepted. */
  readonly clientNames?: ReadonlySet<string> | undefined;
}

export class CertificateError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('certificate', message, options);
  }
}

/**
 * Reads a serving certificate and its key.
 *
 * @throws CertificateError if a file cannot be read or parsed, or the key does not match the certificate
 */
export async function loadCertificate(files: CertificateFiles): Promise<SecureContextOptions> {
  const { certFile, keyFile, clientCaFile } = files;
  try {
    const [cert, key, ca] = await Promise.all([
      readFile(certFile),
      readFile(keyFile),
      clientCaFile === undefined ? undefined : readFile(clientCaFile),
    ]);
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
      throw new CertificateError(`${keyFile} is not the key of ${certFile}; replace both files`);
    }
    return ca === undefined ? { cert, key } : { cert, key, ca };
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

/** Milliseconds without a change before the pair is read: writers replace the two files one after the other. */
const SETTLE = 100;

/**
 * Calls `onChange` with each new pair that fits together. If a pair does not fit (half-written, mismatched), it logs an
 * error and the old pair keeps serving. It watches directories, not files: cert-manager's Secrets change by renaming a
 * symbolic link, which ends a watch on the file itself.
 *
 * @returns a function that stops watching
 */
export function watchCertificate(
  files: CertificateFiles,
  log: Logger,
  onChange: (context: SecureContextOptions) => void,
): () => void {
  let timer: NodeJS.Timeout | undefined;
  let last = '';
  const reload = async () => {
    try {
      const context = await loadCertificate(files);
      const now = String(context.cert) + String(context.ca ?? '');
      if (now !== last) onChange(context);
      last = now;
    } catch (err) {
      log.error({ err }, 'keeping the old certificate');
    }
  };
  const schedule = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void reload(), SETTLE);
  };
  const paths = [files.certFile, files.keyFile, files.clientCaFile].filter((path) => path !== undefined);
  const watchers: FSWatcher[] = [...new Set(paths.map((path) => dirname(path)))].map((path) =>
    watch(path, { persistent: false }, schedule),
  );
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
