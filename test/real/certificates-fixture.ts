import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CertificateAuthority } from '../../sandbox/certificates.ts';

/** Writes a certificate for these names into the directory. @returns its file and its key's */
export async function writeCertificate(
  directory: string,
  name: string,
  authority: CertificateAuthority,
  names: readonly string[],
): Promise<readonly [certFile: string, keyFile: string]> {
  const { cert, key } = authority.issue(names);
  const [certFile, keyFile] = [join(directory, `${name}.crt`), join(directory, `${name}.key`)];
  await writeFile(certFile, cert);
  await writeFile(keyFile, key, { mode: 0o600 });
  return [certFile, keyFile];
}
