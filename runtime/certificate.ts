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
  /** When given, clients must present a certificate of this CA. */
  readonly clientCaFile?: string | undefined;
  /** Names of which a client's certificate must have one. Empty or absent: any certificate of the CA will do. */
  readonly clientNames?: ReadonlySet<string> | undefined;
}

export class CertificateError extends PlumblineError {
  constructor(message: string, options?: ErrorOptions) {
    super('certificate', message, options);
  }
}

/**
 * Reads a serving certificate and its key.
 * @throws CertificateError if a file cannot be read or parsed, or the key is not the certificate's
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
      throw new CertificateError(`${keyFile} is not the key of ${certFile}`);
    }
    return ca === undefined ? { cert, key } : { cert, key, ca };
  } catch (error) {
    if (error instanceof CertificateError) throw error;
    throw new CertificateError(`the serving certificate cannot be used: ${(error as Error).message}`, { cause: error });
  }
}

/** Milliseconds of quiet after the last change of a file before the pair is read: writers replace two files in turn. */
const SETTLE = 100;

/**
 * Calls `onChange` with each new pair that fits together. A pair that does not (half-written, mismatched) is logged
 * and the old one keeps serving. Directories are watched, not files: cert-manager's secrets are swapped by renaming a
 * symbolic link, which ends a watch on the file itself.
 *
 * @returns a function that ends the watching
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
